"""A scripted model server on loopback, for tests and benchmarks.

It speaks the wire formats of OpenAI (chat completions), Anthropic (messages) and Ollama (chat),
streamed and whole, chosen by the path of the request; and it misbehaves on demand. A test says
what the model answers and reads afterwards what was asked and what it would have been billed:

    with ModelServer(provider="openai") as server:
        server.script(match="capital of France", reply=Reply(text="Paris", usage=(12, 1)))
        subprocess.run([RLMD, "exec", ...], env={**os.environ, **server.environment()})
        server.requests[0].last_user

One thread runs an asyncio loop; callables given to script() run in it and must not wait.
"""

import argparse
import asyncio
import dataclasses
import json
import os
import re
import signal
import socket
import ssl
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

sys.path.append(os.path.join(os.path.dirname(__file__), os.pardir))
import patience  # noqa: E402

PROVIDERS = ("openai", "anthropic", "ollama")
PATHS = {"/chat/completions": "openai", "/messages": "anthropic", "/api/chat": "ollama"}
REASONS = {200: "OK", 302: "Found", 400: "Bad Request", 401: "Unauthorized",
           402: "Payment Required", 403: "Forbidden", 404: "Not Found",
           413: "Content Too Large", 429: "Too Many Requests", 500: "Internal Server Error",
           502: "Bad Gateway", 503: "Service Unavailable", 529: "Overloaded"}

# The errors of each provider, with the bodies that they really send.
ERRORS = {
    "openai": {
        "rate_limit": (429, {"error": {
            "message": "Rate limit reached for gpt-test on requests per min (RPM): Limit 3, "
                       "Used 3, Requested 1.",
            "type": "requests", "param": None, "code": "rate_limit_exceeded"}}),
        "overloaded": (503, {"error": {
            "message": "The server is currently overloaded with other requests.",
            "type": "server_error", "param": None, "code": None}}),
        "server_error": (500, {"error": {
            "message": "The server had an error while processing your request.",
            "type": "server_error", "param": None, "code": None}}),
        "billing": (429, {"error": {
            "message": "You exceeded your current quota, please check your plan and billing "
                       "details.",
            "type": "insufficient_quota", "param": None, "code": "insufficient_quota"}}),
        "auth": (401, {"error": {
            "message": "Incorrect API key provided: {key}.", "type": "invalid_request_error",
            "param": None, "code": "invalid_api_key"}}),
        "permission": (403, {"error": {
            "message": "Your account may not use this model.", "type": "permission_error",
            "param": None, "code": None}}),
        "not_found": (404, {"error": {
            "message": "The model `{model}` does not exist or you do not have access to it.",
            "type": "invalid_request_error", "param": None, "code": "model_not_found"}}),
        "context_overflow": (400, {"error": {
            "message": "This model's maximum context length is 8192 tokens. However, your "
                       "messages resulted in 9000 tokens. Please reduce the length of the "
                       "messages.",
            "type": "invalid_request_error", "param": "messages",
            "code": "context_length_exceeded"}}),
        "max_tokens": (400, {"error": {
            "message": "Unsupported parameter: 'max_tokens' is not supported with this model. "
                       "Use 'max_completion_tokens' instead.",
            "type": "invalid_request_error", "param": "max_tokens",
            "code": "unsupported_parameter"}}),
        "max_completion_tokens": (400, {"error": {
            "message": "Unrecognized request argument supplied: max_completion_tokens",
            "type": "invalid_request_error", "param": None, "code": None}}),
        "bad_request": (400, {"error": {
            "message": "Invalid 'messages': empty array.", "type": "invalid_request_error",
            "param": "messages", "code": "empty_array"}}),
        "content_filter": (400, {"error": {
            "message": "The response was filtered due to the prompt triggering the content "
                       "management policy.",
            "type": None, "param": "prompt", "code": "content_filter"}}),
    },
    "anthropic": {
        "rate_limit": (429, {"type": "error", "error": {
            "type": "rate_limit_error",
            "message": "This request would exceed your organization's rate limit."}}),
        "overloaded": (529, {"type": "error", "error": {
            "type": "overloaded_error", "message": "Overloaded"}}),
        "server_error": (500, {"type": "error", "error": {
            "type": "api_error", "message": "Internal server error"}}),
        "billing": (400, {"type": "error", "error": {
            "type": "invalid_request_error",
            "message": "Your credit balance is too low to access the Anthropic API."}}),
        "auth": (401, {"type": "error", "error": {
            "type": "authentication_error", "message": "invalid x-api-key {key}"}}),
        "permission": (403, {"type": "error", "error": {
            "type": "permission_error",
            "message": "Your API key does not have permission to use this model."}}),
        "not_found": (404, {"type": "error", "error": {
            "type": "not_found_error", "message": "model: {model}"}}),
        "context_overflow": (400, {"type": "error", "error": {
            "type": "invalid_request_error",
            "message": "prompt is too long: 208310 tokens > 200000 maximum"}}),
        "cache_control": (400, {"type": "error", "error": {
            "type": "invalid_request_error",
            "message": "cache_control: Extra inputs are not permitted"}}),
        "bad_request": (400, {"type": "error", "error": {
            "type": "invalid_request_error",
            "message": "messages: at least one message is required"}}),
    },
    "ollama": {
        "rate_limit": (503, {
            "error": "server busy, please try again.  maximum pending requests exceeded"}),
        "overloaded": (503, {
            "error": "server busy, please try again.  maximum pending requests exceeded"}),
        "server_error": (500, {"error": "llama runner process has terminated"}),
        "not_found": (404, {"error": "model '{model}' not found"}),
        "context_overflow": (400, {
            "error": "prompt too long; exceeded max context length by 300 tokens"}),
        "bad_request": (400, {"error": "invalid request"}),
    },
}


def count_tokens(text: str) -> int:
    """The tokens of a text to this model: any fixed rule will do."""
    return (len(text) + 3) // 4


@dataclasses.dataclass
class Reply:
    """One answer, and how badly it is delivered. Times are seconds, sizes bytes of the body."""
    text: str = ""
    thinking: str = ""
    usage: Union[Tuple[int, int], None, bool] = None  # (input, output); None: counted; False: none
    cached: int = 0                        # of the input, read from a cache
    written: int = 0                       # of the input, written to a cache
    written_1h: int = 0                    # likewise, for an hour; Anthropic only
    reasoning: int = 0                     # of the output
    finish: str = "stop"                   # "length", "refusal"
    model: str = ""                        # as resolved; "": as asked for
    pieces: int = 4                        # events of text in a stream
    error: str = ""                        # a name in ERRORS
    status: int = 0                        # over the error's, or 200
    headers: Dict[str, str] = dataclasses.field(default_factory=dict)
    body: Optional[bytes] = None           # sent as it is
    content_type: str = ""                 # over the right one
    whole: bool = False                    # even where a stream was asked for
    streamed: bool = False                 # even where none was
    stream_error: str = ""                 # a name in ERRORS, in the middle of a stream
    delay: float = 0                       # before the first byte
    until: Optional[Callable[[], bool]] = None  # likewise: asked again and again until it is so
    piece_delay: float = 0                 # between writes
    piece_size: int = 0                    # bytes a write; 1 splits at every byte
    cut_after: Optional[int] = None        # closes after so many bytes, without the end
    stall_after: Optional[int] = None      # is silent for ever after so many bytes
    repeat_body: int = 1                   # the body so many times over: huge answers
    raw: Optional[bytes] = None            # sent in place of all of HTTP; then it closes
    drop: bool = False                     # closes without a byte, though it is billed
    hang_up: bool = False                  # closes after the answer, without having said so

    @staticmethod
    def html(status: int = 200) -> "Reply":
        page = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body>proxy</body></html>"
        return Reply(status=status, body=page, content_type="text/html; charset=utf-8")

    @staticmethod
    def empty(status: int = 200) -> "Reply":
        return Reply(status=status, body=b"")

    @staticmethod
    def truncated_json() -> "Reply":
        return Reply(body=b'{"id": "x", "choices": [{"message": {"cont',
                     content_type="application/json")

    @staticmethod
    def huge(size: int = 100 << 20) -> "Reply":
        block = b"data: " + b"x" * 65530
        return Reply(body=block, repeat_body=size // len(block) + 1,
                     content_type="text/event-stream")

    @property
    def plain(self) -> bool:
        """Whether it can be sent at once."""
        return not (self.delay or self.until or self.piece_delay or self.piece_size
                    or self.repeat_body > 1 or self.cut_after is not None
                    or self.stall_after is not None)


class Request:
    """A client's request, and what became of it."""

    def __init__(self, path: str, headers: Dict[str, str], body: bytes):
        self.time = time.monotonic()
        self.path = path
        self.headers = headers             # names in lower case
        self.body = body
        self.provider = next((name for end, name in PATHS.items() if path.endswith(end)), "")
        try:
            self.json: Any = json.loads(body)
        except ValueError:
            self.json = None
        self.index = 0
        self.nth = 0                       # requests that its connection had brought before
        self.finished = False              # the reply was sent, all that there was
        self.disconnected = False          # the client left before
        self.billed_input = self.billed_output = 0
        self.billed_cache = (0, 0, 0)      # of the input: read, written, written for an hour

    def _get(self, name: str, otherwise: Any) -> Any:
        return self.json.get(name, otherwise) if isinstance(self.json, dict) else otherwise

    @property
    def model(self) -> str:
        return self._get("model", "")

    @property
    def stream(self) -> bool:
        return bool(self._get("stream", self.provider == "ollama"))

    @property
    def max_tokens(self) -> Optional[int]:
        options = self._get("options", {})
        return (self._get("max_tokens", None) or self._get("max_completion_tokens", None)
                or options.get("num_predict"))

    @property
    def messages(self) -> List[Tuple[str, str]]:
        """Role and text of each message, the system prompt first, whatever the provider."""
        found = [("system", flatten(self._get("system", "")))] if self._get("system", "") else []
        return found + [(each["role"], flatten(each["content"]))
                        for each in self._get("messages", [])]

    @property
    def system(self) -> str:
        return "".join(text for role, text in self.messages if role in ("system", "developer"))

    @property
    def last_user(self) -> str:
        return next((text for role, text in reversed(self.messages) if role == "user"), "")

    @property
    def demonstration(self) -> List[Tuple[str, str]]:
        """The messages before the first turn that name the inputs and look at them: two, or none."""
        return self.messages[1:3] if "TASK:" in self.text(3) and "\nTurn 1 of " in self.text(3) else []

    def text(self, place: int) -> str:
        """The text of a message, "" where there is none."""
        return self.messages[place][1] if place < len(self.messages) else ""

    @property
    def first_turn(self) -> str:
        """The prompt of the first turn."""
        return self.text(1 + len(self.demonstration))

    @property
    def turn(self) -> int:
        """How often the model has answered in this conversation."""
        answers = sum(role == "assistant" for role, _ in self.messages)
        return answers - bool(self.demonstration)

    @property
    def key(self) -> str:
        bearer = self.headers.get("authorization", "")
        return self.headers.get("x-api-key", bearer[len("Bearer "):])


def flatten(content: Any) -> str:
    """The text of a message whose content is a string or a list of blocks."""
    if isinstance(content, list):
        return "".join(block.get("text", "") for block in content)
    return content or ""


def split(text: str, pieces: int) -> List[str]:
    size = max(1, -(-len(text) // max(1, pieces)))
    return [text[i:i + size] for i in range(0, len(text), size)]


def dumps(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


class Answer:
    """A reply to a request in the words of its provider."""

    def __init__(self, request: Request, reply: Reply):
        self.request, self.reply = request, reply
        self.model = reply.model or request.model
        if isinstance(reply.usage, tuple):
            self.input, self.output = reply.usage
        else:
            self.input = sum(count_tokens(text) for _, text in request.messages)
            self.output = count_tokens(reply.text) + count_tokens(reply.thinking)

    def error(self, name: str) -> Tuple[int, bytes]:
        status, body = ERRORS[self.request.provider][name]
        text = json.dumps(body).replace("{model}", self.model)
        return status, text.replace("{key}", self.request.key).encode()

    def whole(self) -> bytes:
        return dumps(getattr(self, self.request.provider + "_whole")())

    def stream(self) -> bytes:
        return b"".join(getattr(self, self.request.provider + "_stream")())

    # OpenAI

    def openai_usage(self) -> Any:
        return {"prompt_tokens": self.input, "completion_tokens": self.output,
                "total_tokens": self.input + self.output,
                "prompt_tokens_details": {"cached_tokens": self.reply.cached,
                                          "cache_write_tokens": self.reply.written},
                "completion_tokens_details": {"reasoning_tokens": self.reply.reasoning}}

    def openai_finish(self) -> str:
        return {"refusal": "stop"}.get(self.reply.finish, self.reply.finish)

    def openai_whole(self) -> Any:
        refused = self.reply.finish == "refusal"
        message = {"role": "assistant", "content": None if refused else self.reply.text,
                   "refusal": self.reply.text if refused else None}
        if self.reply.thinking:
            message["reasoning_content"] = self.reply.thinking
        whole = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1,
                 "model": self.model,
                 "choices": [{"index": 0, "message": message, "logprobs": None,
                              "finish_reason": self.openai_finish()}]}
        if self.reply.usage is not False:
            whole["usage"] = self.openai_usage()
        return whole

    def openai_stream(self):
        def chunk(choices, usage=None):
            return b"data: " + dumps({
                "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1,
                "model": self.model, "choices": choices, "usage": usage}) + b"\n\n"

        def delta(value, finish=None):
            return chunk([{"index": 0, "delta": value, "finish_reason": finish}])

        yield delta({"role": "assistant", "content": ""})
        for piece in split(self.reply.thinking, self.reply.pieces):
            yield delta({"reasoning_content": piece})
        field = "refusal" if self.reply.finish == "refusal" else "content"
        for piece in split(self.reply.text, self.reply.pieces):
            yield delta({field: piece})
        if self.reply.stream_error:
            yield b"data: " + self.error(self.reply.stream_error)[1] + b"\n\n"
            return
        yield delta({}, self.openai_finish())
        options = self.request.json.get("stream_options") or {}
        if self.reply.usage is not False and options.get("include_usage"):
            yield chunk([], self.openai_usage())
        yield b"data: [DONE]\n\n"

    # Anthropic: cached tokens are outside of input_tokens

    def anthropic_finish(self) -> str:
        return {"stop": "end_turn", "length": "max_tokens"}.get(self.reply.finish,
                                                                self.reply.finish)

    def anthropic_usage(self, output: int) -> Any:
        written = self.reply.written + self.reply.written_1h
        return {"input_tokens": self.input - self.reply.cached - written,
                "cache_creation_input_tokens": written,
                "cache_creation": {"ephemeral_5m_input_tokens": self.reply.written,
                                   "ephemeral_1h_input_tokens": self.reply.written_1h},
                "cache_read_input_tokens": self.reply.cached, "output_tokens": output}

    def anthropic_message(self, content: Any, finish: Optional[str], output: int) -> Any:
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": self.model,
                   "content": content, "stop_reason": finish, "stop_sequence": None}
        if self.reply.usage is not False:
            message["usage"] = self.anthropic_usage(output)
        return message

    def anthropic_whole(self) -> Any:
        content = [{"type": "text", "text": self.reply.text}]
        if self.reply.thinking:
            content.insert(0, {"type": "thinking", "thinking": self.reply.thinking,
                               "signature": "x"})
        return self.anthropic_message(content, self.anthropic_finish(), self.output)

    def anthropic_stream(self):
        def event(kind, **fields):
            return (b"event: " + kind.encode() + b"\ndata: "
                    + dumps({"type": kind, **fields}) + b"\n\n")

        yield event("message_start", message=self.anthropic_message([], None, 1))
        yield event("ping")
        blocks = [("text", self.reply.text)]
        if self.reply.thinking:
            blocks.insert(0, ("thinking", self.reply.thinking))
        for index, (kind, text) in enumerate(blocks):
            yield event("content_block_start", index=index, content_block={"type": kind, kind: ""})
            for piece in split(text, self.reply.pieces):
                yield event("content_block_delta", index=index,
                            delta={"type": kind + "_delta", kind: piece})
            yield event("content_block_stop", index=index)
        if self.reply.stream_error:
            yield b"event: error\ndata: " + self.error(self.reply.stream_error)[1] + b"\n\n"
            return
        end = {"delta": {"stop_reason": self.anthropic_finish(), "stop_sequence": None}}
        if self.reply.usage is not False:
            end["usage"] = {"output_tokens": self.output}
        yield event("message_delta", **end)
        yield event("message_stop")

    # Ollama

    def ollama_line(self, message: Any, done: bool) -> Any:
        line = {"model": self.model, "created_at": "2026-01-01T00:00:00Z",
                "message": {"role": "assistant", **message}, "done": done}
        if done:
            line["done_reason"] = self.reply.finish
            line["total_duration"] = 1000000
        if done and self.reply.usage is not False:
            line["prompt_eval_count"] = self.input
            line["eval_count"] = self.output
        return line

    def ollama_whole(self) -> Any:
        message = {"content": self.reply.text}
        if self.reply.thinking:
            message["thinking"] = self.reply.thinking
        return self.ollama_line(message, True)

    def ollama_stream(self):
        for piece in split(self.reply.thinking, self.reply.pieces):
            yield dumps(self.ollama_line({"content": "", "thinking": piece}, False)) + b"\n"
        for piece in split(self.reply.text, self.reply.pieces):
            yield dumps(self.ollama_line({"content": piece}, False)) + b"\n"
        if self.reply.stream_error:
            yield self.error(self.reply.stream_error)[1] + b"\n"
            return
        yield dumps(self.ollama_line({"content": ""}, True)) + b"\n"

    def bill(self):
        self.request.billed_input, self.request.billed_output = self.input, self.output
        self.request.billed_cache = (self.reply.cached, self.reply.written, self.reply.written_1h)

    def head_and_body(self) -> Tuple[bytes, bytes]:
        """Status line with headers, and the body. A stream's length is not announced."""
        reply, streamed = self.reply, False
        if reply.body is not None:
            status, body, kind = 200, reply.body, "application/json"
        elif reply.error:
            status, body = self.error(reply.error)
            kind = "application/json"
        elif (self.request.stream or reply.streamed) and not reply.whole:
            status, body, streamed = 200, self.stream(), True
            kind = ("application/x-ndjson" if self.request.provider == "ollama"
                    else "text/event-stream; charset=utf-8")
        else:
            status, body, kind = 200, self.whole(), "application/json"
        status = reply.status or status
        lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}",
                 f"Content-Type: {reply.content_type or kind}"]
        lines += [f"{name}: {value}" for name, value in reply.headers.items()]
        if streamed:
            lines.append("Transfer-Encoding: chunked")
            body = body if not reply.plain else chunked(body) + b"0\r\n\r\n"
        else:
            lines.append(f"Content-Length: {len(body) * reply.repeat_body}")
        if status == 200 and (reply.body is None):
            self.bill()
        return ("\r\n".join(lines) + "\r\n\r\n").encode(), body


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data) if data else b""


class Connection(asyncio.Protocol):
    """HTTP/1.1 with keep-alive, one request at a time."""

    def __init__(self, server: "ModelServer"):
        self.server = server
        self.buffer = b""
        self.request: Optional[Request] = None
        self.task: Optional[asyncio.Task] = None
        self.count = 0                     # requests so far
        self.writable = asyncio.Event()
        self.writable.set()
        with server.lock:
            server.accepted += 1
            server.changed.notify_all()

    def connection_made(self, transport):
        self.transport = transport
        with self.server.lock:
            self.server.connections.add(self)
            self.server.connection_count += 1
            self.server.changed.notify_all()
        tls = transport.get_extra_info("ssl_object")
        self.server.resumed += bool(tls and tls.session_reused)

    def connection_lost(self, exc):
        with self.server.lock:
            self.server.connections.discard(self)
            self.server.changed.notify_all()
        if self.task:
            self.task.cancel()
        if self.request:
            self.request.disconnected = True
            self.server.ended(self.request)
            self.request = None

    def pause_writing(self):
        self.writable.clear()

    def resume_writing(self):
        self.writable.set()

    def data_received(self, data):
        self.buffer += data
        if not self.request:
            self.take_request()

    def take_request(self):
        head, separator, rest = self.buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip()
                   for name, _, value in (line.partition(":") for line in lines[1:])}
        length = int(headers.get("content-length", 0))
        if len(rest) < length:
            return
        self.buffer = rest[length:]
        if lines[0].startswith("GET ") and lines[0].split()[1].endswith("/models"):
            self.transport.write(self.server.list_of_models())
            return
        self.request = Request(lines[0].split()[1], headers, rest[:length])
        self.request.nth = self.count
        self.count += 1
        self.answer(Answer(self.request, self.server.reply_to(self.request)))

    def answer(self, answer: Answer):
        if not answer.request.provider:
            self.transport.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            self.end_request()
        elif answer.reply.raw is not None or answer.reply.drop:
            if answer.reply.drop:
                answer.bill()
            self.transport.write(answer.reply.raw or b"")
            self.end_request()
            self.transport.close()
        elif answer.reply.plain:
            self.send(b"".join(answer.head_and_body()), answer.reply.hang_up)
            self.end_request()
        else:
            self.task = asyncio.get_running_loop().create_task(self.deliver(answer))

    def send(self, data: bytes, hang_up: bool):
        """With its last byte the end of the connection, in one packet, where it hangs up."""
        if hang_up:
            raw = self.transport.get_extra_info("socket")
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        self.transport.write(data)
        if hang_up:
            self.transport.close()

    async def deliver(self, answer: Answer):
        reply = answer.reply
        await asyncio.sleep(reply.delay)
        while reply.until and not reply.until():
            await asyncio.sleep(0.05)
        head, body = answer.head_and_body()
        frame = chunked if b"Transfer-Encoding" in head else bytes
        end = next((n for n in (reply.cut_after, reply.stall_after) if n is not None), None)
        self.transport.write(head)
        for _ in range(reply.repeat_body):
            rest = body[:end]
            while rest:
                piece = rest[:reply.piece_size or len(rest)]
                rest = rest[len(piece):]
                self.transport.write(frame(piece))
                self.server.sent += len(piece)
                await asyncio.sleep(0)  # for the other connections: their turn, though it can go on
                await self.writable.wait()
                if self.transport.is_closing():
                    return
                if rest and (reply.piece_delay or reply.piece_size):
                    await asyncio.sleep(reply.piece_delay)
        if reply.cut_after is not None:
            self.end_request()
            self.transport.close()
            return
        if reply.stall_after is not None:
            self.server.fell_silent()
            await asyncio.Event().wait()
        if frame is chunked:
            self.transport.write(b"0\r\n\r\n")
        self.end_request()

    def end_request(self):
        request, self.request, self.task = self.request, None, None
        request.finished = True
        self.server.ended(request)
        if self.buffer:
            self.take_request()


Match = Union[None, str, Callable[[Request], bool]]


class ModelServer:
    """The server; start() and stop() it, or use it in a with statement."""

    def __init__(self, provider: str = "openai", port: int = 0,
                 prices: Union[Tuple[int, ...], Dict[str, Tuple[int, ...]]] = (0, 0),
                 tls: Optional[ssl.SSLContext] = None):
        self.provider = provider
        self.port = port
        self.tls = tls
        self.prices = prices               # pico-dollars a token; of each model, or of all:
                                           # input, output, and input by way of the cache: read,
                                           # written, written for an hour
        self.key = "sk-test-0123456789"
        self.models = None                 # its list of them: JSON, or bytes; None: it has none
        self.lists_asked = 0
        self.requests: List[Request] = []
        self.in_flight = self.peak = 0
        self.accepted = 0                  # connections, also those that failed in TLS
        self.connection_count = 0
        self.resumed = 0                   # of them, TLS sessions that a client had kept
        self.sent = 0                      # bytes of bodies that were not sent at once
        self.silent = 0                    # answers that have stopped in between, for ever
        self.connections = set()
        self.rules: List[list] = []
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)

    # The model's words

    def script(self, match: Match = None,
               reply: Union[Reply, Callable[[Request], Reply]] = Reply(), times: int = 0):
        """Adds a rule: the first that matches and is not used up answers.

        `match` is a callable, or a pattern to be found in the last user message, or None for
        every request. `times` 0 is for ever.
        """
        with self.lock:
            self.rules.append([match, reply, times or float("inf")])
        return self

    def replies(self, *replies: Reply):
        """These, one a request, in this order."""
        for reply in replies:
            self.script(None, reply, times=1)
        return self

    def reply_to(self, request: Request) -> Reply:
        with self.lock:
            request.index = len(self.requests)
            self.requests.append(request)
            self.in_flight += 1
            self.peak = max(self.peak, self.in_flight)
            self.changed.notify_all()
            for rule in self.rules:
                match, reply, left = rule
                if left and (match is None
                             or (match(request) if callable(match)
                                 else re.search(match, request.last_user))):
                    rule[2] -= 1
                    break
            else:
                reply = Reply(status=500, body=b"the test's script has no answer to this")
        return reply(request) if callable(reply) else reply

    def list_of_models(self) -> bytes:
        """Its list is not of the script, and is not counted among the requests."""
        with self.lock:
            self.lists_asked += 1
            self.changed.notify_all()
        if self.models is None:
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        body = self.models if isinstance(self.models, bytes) else json.dumps(self.models).encode()
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)

    # The requests

    def ended(self, request: Request):
        with self.lock:
            self.in_flight -= 1
            self.changed.notify_all()

    def fell_silent(self):
        with self.lock:
            self.silent += 1
            self.changed.notify_all()

    def is_read(self) -> bool:
        """Whether nothing of what was sent lies on its way, nor at the other end."""
        with open("/proc/net/tcp", encoding="ascii") as file:
            rows = [line.split() for line in file.readlines()[1:]]
        ours = [row for row in rows if f":{self.port:04X}" in row[1] + row[2]]
        return all(row[4] == "00000000:00000000" for row in ours if row[3] == "01")  # established

    def wait(self, condition: Callable[["ModelServer"], bool], timeout: Optional[float] = None) -> bool:
        """Until the condition holds; looked at whenever a request or a connection comes or ends."""
        timeout = timeout or patience.hung()
        with self.lock:
            return self.changed.wait_for(lambda: condition(self), timeout)

    def hang_up(self, word: bytes = b""):
        """The server's end of all connections, with that as the last word."""
        def end():
            for connection in list(self.connections):
                connection.transport.write(word)
                connection.transport.get_extra_info("socket").shutdown(socket.SHUT_WR)
            ended.set()

        ended = threading.Event()
        self.loop.call_soon_threadsafe(end)
        ended.wait()

    @property
    def billed_tokens(self) -> Tuple[int, int]:
        return (sum(each.billed_input for each in self.requests),
                sum(each.billed_output for each in self.requests))

    @property
    def billed_cost(self) -> int:
        """Pico-dollars by `prices`."""
        return sum(self.cost_of(request) for request in self.requests)

    def cost_of(self, request: Request) -> int:
        prices = self.prices if isinstance(self.prices, tuple) else self.prices[request.model]
        full, output, *cached = prices
        cost = request.billed_input * full + request.billed_output * output
        for tokens, price in zip(request.billed_cache, cached):
            cost += tokens * (price - full)
        return cost

    # Where it is

    @property
    def url(self) -> str:
        scheme = "https" if self.tls else "http"
        return f"{scheme}://127.0.0.1:{self.port}" + ("/v1" if self.provider == "openai" else "")

    def environment(self) -> Dict[str, str]:
        """The variables that lead rlmd, and the providers' own clients, here."""
        return {
            "openai": {"OPENAI_BASE_URL": self.url, "OPENAI_API_KEY": self.key},
            "anthropic": {"ANTHROPIC_BASE_URL": self.url, "ANTHROPIC_API_KEY": self.key},
            "ollama": {"OLLAMA_HOST": self.url},
        }[self.provider]

    def start(self):
        ready = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self.serve(ready)), daemon=True)
        self.thread.start()
        ready.wait()
        return self

    async def serve(self, ready: threading.Event):
        self.loop = asyncio.get_running_loop()
        self.stopping = asyncio.Event()
        server = await self.loop.create_server(lambda: Connection(self), "127.0.0.1", self.port,
                                               backlog=4096, ssl=self.tls)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await self.stopping.wait()
        server.close()
        for connection in list(self.connections):
            connection.transport.abort()
        await asyncio.sleep(0)

    def stop(self):
        self.loop.call_soon_threadsafe(self.stopping.set)
        self.thread.join()

    __enter__ = start

    def __exit__(self, *exc):
        self.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay-ms", type=float, default=0, help="before each answer")
    parser.add_argument("--text", default="ok", help="of each answer")
    parser.add_argument("--replies", metavar="FILE",
                        help="JSON array of texts: the answers of a conversation, turn by turn")
    parser.add_argument("--pieces", type=int, default=1, help="events of text in a stream")
    options = parser.parse_args()

    texts = [options.text]
    if options.replies:
        with open(options.replies, encoding="utf-8") as file:
            texts = json.load(file)
    replies = [Reply(text=text, delay=options.delay_ms / 1000, pieces=options.pieces)
               for text in texts]
    server = ModelServer(port=options.port)
    server.script(None, lambda request: replies[min(request.turn, len(replies) - 1)])
    with server:
        print(server.port, flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    main()

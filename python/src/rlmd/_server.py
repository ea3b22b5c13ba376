"""The rlmd program as a child of this process, or a server at a socket: JSON-RPC with it.

One thread reads. Any thread may call; answers are futures. A forked child has no server of its
parent's: it starts its own.
"""

from __future__ import annotations

import asyncio
import atexit
import base64
import concurrent.futures
import importlib
import inspect
import itertools
import json
import os
import shutil
import socket
import subprocess
import threading
from typing import Any, BinaryIO, Callable, Dict, Iterable, List, Optional, Tuple, Union

from ._errors import Error, ServerError, error_of

Params = Dict[str, Any]
Future = concurrent.futures.Future
PIECE = 3 << 20  # bytes of a blob in one message
WORDS = 20  # lines of its standard error that an error shows
HELP = ("no rlmd program was found: on Linux, pip install rlmd-runtime, or install rlmd's package, or "
        "name it by RLMD_BIN; on macOS and Windows name a command that starts it elsewhere, as "
        "RLMD_BIN='ssh HOST rlmd'")


SOCKET = "unix:"  # begins the address of a server


def command(binary: Optional[str] = None) -> List[str]:
    """The argument, or $RLMD_BIN, which may have arguments of its own, or the program of the package
    rlmd-runtime, or `rlmd` of the PATH."""
    named = binary or os.environ.get("RLMD_BIN")
    if named:
        whole = named.startswith(SOCKET) or os.path.exists(named)
        return [named] if whole else named.split()
    try:
        found: Optional[str] = importlib.import_module("rlmd_runtime").PROGRAM
    except ImportError:
        found = shutil.which("rlmd")
    if not found:
        raise ServerError(HELP)
    return [found]


class Program:
    """A child of this process that serves it."""

    def __init__(self, argv: List[str]):
        variables = {name: value for name, value in os.environ.items() if name != "RLMD_BIN"}
        try:
            # A session of its own: Ctrl-C is for us.
            self._process = subprocess.Popen(
                [*argv, "serve", "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, start_new_session=True, env=variables)
        except OSError as error:
            raise ServerError(f"{argv[0]} cannot be started: {error.strerror}. {HELP}") from None
        except RuntimeError as error:
            raise ServerError(f"{argv[0]} cannot be started here: {error}; ask a server at a socket "
                              "(binary='unix:PATH'), or from the main interpreter") from None
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self.input: BinaryIO = self._process.stdin  # type: ignore[assignment]
        self.output: BinaryIO = self._process.stdout  # type: ignore[assignment]
        self.errors: Iterable[bytes] = self._process.stderr
        self._streams = self._process.stdin, self._process.stdout, self._process.stderr

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> str:
        """How it ended, which it does or has done."""
        return f"rlmd ended (status {self._process.wait()})"

    def close_streams(self) -> None:
        close_all_of(self._streams)

    def close(self) -> None:
        """Ends it; its input is closed."""
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Connection:
    """A server that listens at a path, for others too."""

    def __init__(self, path: str):
        self._path, self._socket = path, socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            raise ServerError(f"no server answers at {path}: {error.strerror}. "
                              f"'rlmd serve --listen unix:{path}' is one") from None
        self.input: BinaryIO = self._socket.makefile("wb")
        self.output: BinaryIO = self._socket.makefile("rb")
        self.errors: Iterable[bytes] = ()

    def kill(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it has ended

    def end(self) -> str:
        return f"the server at {self._path} has ended the connection"

    def close_streams(self) -> None:
        close_all_of((self.input, self.output, self._socket))

    def close(self) -> None:
        self.kill()


def close_all_of(streams: Iterable[Any]) -> None:
    for stream in streams:
        try:
            stream.close()
        except OSError:
            pass  # words that it will not read


class Server:
    """A started program, or a connection to one, until it ends or close() is called."""

    def __init__(self, argv: List[str], tenant: Optional[str] = None):
        self.pid = os.getpid()
        self._link: Union[Program, Connection] = (
            Connection(argv[0][len(SOCKET):]) if argv[0].startswith(SOCKET) else Program(argv))
        self._writing, self._lock = threading.Lock(), threading.Lock()
        self._ids = itertools.count(1)
        self._waiting: Dict[int, "Future[Any]"] = {}
        self._listeners: Dict[str, Callable[[str, Params], None]] = {}
        self._early: Dict[str, List[Tuple[str, Params]]] = {}
        self._handlers: Dict[str, Callable[[str, Params], Any]] = {}
        self._asked: Dict[str, List[Tuple[int, str, Params]]] = {}  # before there was a handler
        self._words: List[str] = []
        self._end: Optional[Error] = None
        self._closed = False
        self._pool = concurrent.futures.ThreadPoolExecutor(64, "rlmd-tool")
        self._hearer = threading.Thread(target=self._hear, name="rlmd-words", daemon=True)
        self._hearer.start()
        self._reader = threading.Thread(target=self._read, name="rlmd", daemon=True)
        self._reader.start()
        try:
            self.call("initialize", protocolVersion="1", **({"tenant": tenant} if tenant else {}),
                      client={"name": "rlmd-python", "version": "0.1.0"})
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        return not self._closed and self._end is None and self.pid == os.getpid()

    # Messages to it

    def begin(self, method: str, **params: Any) -> "Future[Any]":
        """Asks; the future has the result, or raises the error."""
        if self.pid != os.getpid():
            raise ServerError("this process was forked: it has no server of its parent's")
        future: "Future[Any]" = Future()
        number = next(self._ids)
        with self._lock:
            if self._end:
                raise self._end
            self._waiting[number] = future
        self._send({"id": number, "method": method, "params": params})
        return future

    def call(self, method: str, **params: Any) -> Any:
        return self.begin(method, **params).result()

    def _send(self, message: Params) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        try:
            with self._writing:
                self._link.input.write(line)
                self._link.input.flush()
        except (OSError, ValueError):
            pass  # it has ended, which the reader tells

    def blob(self, data: bytes) -> str:
        """The name of a text that is too long for a message."""
        name: str = self.call("blob.begin")["blob"]
        for place in range(0, len(data), PIECE):
            part = base64.b64encode(data[place:place + PIECE]).decode()
            self.call("blob.append", blob=name, base64=part)
        self.call("blob.end", blob=name)
        return name

    # Jobs and sessions, by their names

    def listen(self, name: str, listener: Callable[[str, Params], None],
               handler: Callable[[str, Params], Any]) -> None:
        """listener(method, params) hears all that is said of a job or session, in order, in the
        reader's thread; handler answers its requests, in a thread of its own."""
        with self._lock:
            early = self._early.pop(name, [])
            for each in early:
                listener(*each)
            self._listeners[name], self._handlers[name] = listener, handler
            asked = self._asked.pop(name, [])
        for number, method, params in asked:
            self._pool.submit(self._answer, number, handler, method, params)

    def forget(self, name: str) -> None:
        with self._lock:
            self._listeners.pop(name, None)
            self._handlers.pop(name, None)
            self._early.pop(name, None)
            self._asked.pop(name, None)

    def later(self, function: Callable[[], None]) -> None:
        """Calls it in a thread of its own, while the server lives: the reader holds locks."""
        try:
            self._pool.submit(function)
        except RuntimeError:
            pass

    # Messages from it

    def _hear(self) -> None:
        for line in self._link.errors:
            self._words = [*self._words[1 - WORDS:], line.decode("utf-8", "replace").rstrip()]

    def _read(self) -> None:
        why = ""
        try:
            for line in self._link.output:
                self._take(json.loads(line))
        except ValueError as error:
            why = f"it said what is no message: {error}"
            self._link.kill()
        except OSError as error:
            why = str(error)
        self._hearer.join(5)
        end = self._link.end()
        with self._writing:
            self._link.close_streams()
        words = "; ".join([why, *self._words]).strip("; ")
        self._stop(ServerError(end + (f": {words}" if words else "")))

    def _stop(self, why: Error) -> None:
        with self._lock:
            self._end = why
            waiting, self._waiting = self._waiting, {}
            listeners = list(self._listeners.values())
        for future in waiting.values():
            future.set_exception(why)
        for listener in listeners:
            listener("end", {"why": why})
        self._pool.shutdown(wait=False)

    def _take(self, message: Params) -> None:
        method, number = message.get("method"), message.get("id")
        if method is None:
            with self._lock:
                future = self._waiting.pop(number, None) if isinstance(number, int) else None
            if future and "error" in message:
                error = message["error"]
                future.set_exception(error_of(error["data"]["kind"], error["message"]))
            elif future:
                future.set_result(message["result"])
            return
        params = message["params"]
        name = params.get("job") or params.get("session")
        if number is not None:
            self._ask(name, number, method, params)
        elif name:
            self._tell(name, method, params)

    def _tell(self, name: str, method: str, params: Params) -> None:
        """The caller may not know yet how the job is called."""
        with self._lock:
            listener = self._listeners.get(name)
            if listener is None:
                self._early.setdefault(name, []).append((method, params))
        if listener:
            listener(method, params)

    def _ask(self, name: str, number: int, method: str, params: Params) -> None:
        with self._lock:
            handler = self._handlers.get(name)
            if handler is None:
                self._asked.setdefault(name, []).append((number, method, params))
        if handler:
            self._pool.submit(self._answer, number, handler, method, params)

    def _answer(self, number: int, handler: Callable[[str, Params], Any], method: str,
                params: Params) -> None:
        try:
            result = handler(method, params)
            if inspect.isawaitable(result):
                result = asyncio.run(_awaited(result))
            self._send({"id": number, "result": result})
        except Exception as error:
            words = f"{type(error).__name__}: {error}"
            self._send({"id": number, "error": {"code": -32000, "message": words}})

    # The end

    def close(self) -> None:
        """Ends all that it does for us, and a program of our own."""
        if self.pid != os.getpid():
            return
        self._closed = True
        with self._writing:
            close_all_of((self._link.input,))
        self._link.close()
        if threading.current_thread() is not self._reader:
            self._reader.join(5)  # its interpreter may have no thread when it ends


async def _awaited(value: Any) -> Any:
    return await value


_shared: Dict[Any, Server] = {}
_starting = threading.Lock()


def shared(binary: Optional[str] = None, tenant: Optional[str] = None) -> Server:
    """One for all that this process asks with the same environment, in the same directory, for the
    same tenant."""
    key = (binary, tenant, os.getpid(), os.getcwd(), tuple(sorted(os.environ.items())))
    with _starting:
        server = _shared.get(key)
        if server is None or not server.alive:
            server = _shared[key] = Server(command(binary), tenant)
        return server


def _forked() -> None:
    """The lock of the parent may be held by a thread that the child has not."""
    global _starting
    _starting = threading.Lock()
    _shared.clear()


@atexit.register
def close_all() -> None:
    """Ends the programs that this process has started to ask; the next call starts another. Done
    when Python ends; call it before a sub-interpreter ends, which may have no threads then."""
    for server in list(_shared.values()):
        server.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)

"""A headless Chromium, spoken to by the DevTools protocol over two pipes.

https://chromedevtools.github.io/devtools-protocol/ - messages are JSON, each with a NUL behind it.
It has no network: whatever it asks for is refused, and counted.
"""

import base64
import contextlib
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile

import patience

PROGRAM = shutil.which("chromium")
OPTIONS = ["--headless", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu",
           "--disable-dev-shm-usage", "--hide-scrollbars", "--no-proxy-server",
           "--host-resolver-rules=MAP * ~NOTFOUND"]


class Browser:
    """One page of it."""

    def __init__(self, home):
        to_read, self.to = os.pipe()
        self.fro, to_write = os.pipe()
        sandbox = ["--no-sandbox"] if os.getuid() == 0 else []

        def give_pipes():
            os.dup2(to_read, 3)
            os.dup2(to_write, 4)

        # Above what the child's dup2() could overwrite.
        to_read, to_write = (_moved(fd) for fd in (to_read, to_write))
        self.process = subprocess.Popen(
            [PROGRAM, *OPTIONS, *sandbox, f"--user-data-dir={home}", "about:blank"],
            env={"HOME": str(home), "PATH": os.environ["PATH"], "TMPDIR": str(home)},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=give_pipes, pass_fds=(3, 4), start_new_session=True)
        os.close(to_read)
        os.close(to_write)
        self.number, self.buffer, self.events, self.session = 0, b"", [], None
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"],
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _read(self):
        while b"\0" not in self.buffer:
            if not select.select([self.fro], [], [], patience.hung())[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self.fro, 1 << 16)
            if not piece:
                raise ConnectionError("the browser has gone")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode("utf-8") + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self.number:
                break
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def await_event(self, method):
        while True:
            for event in self.events:
                if event.get("method") == method:
                    self.events.remove(event)
                    return event["params"]
            self.events.append(self._read())

    def open(self, path, fragment="", width=1280, height=800):
        """Loads a file; gives the milliseconds that it took."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)
        self.call("Page.navigate", url="about:blank")
        self.await_event("Page.loadEventFired")
        self.events.clear()
        self.call("Page.navigate", url=pathlib.Path(path).as_uri() + fragment)
        self.await_event("Page.loadEventFired")

    def run(self, script):
        """The value of a script's expression."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def complaints(self):
        """Complaints of the page against itself, and the requests that it made."""
        texts = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                texts.append(str(params["exceptionDetails"])[:1000])
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                texts.append(params["entry"]["text"])
            elif method == "Network.requestWillBeSent":
                texts.append("asked for " + params["request"]["url"])
        return texts

    def key(self, name):
        text = {"text": name} if len(name) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, **(text if kind == "keyDown" else {}))

    def screenshot(self, path):
        picture = self.call("Page.captureScreenshot", format="png")["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(picture))

    def close(self):
        self.session = None
        with contextlib.suppress(ConnectionError, OSError):
            self.call("Browser.close")
        self.process.wait()
        os.close(self.to)
        os.close(self.fro)


def _moved(fd):
    """The same pipe, at a descriptor that neither 3 nor 4 is."""
    import fcntl

    other = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(fd)
    return other


@contextlib.contextmanager
def browser():
    with tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True) as home:
        it = Browser(home)
        try:
            yield it
        finally:
            it.close()

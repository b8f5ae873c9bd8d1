"""A headless Chromium for tests of pages, over its DevTools pipe: no driver, no package, no network."""

from __future__ import annotations

import base64
import functools
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.real_parts import missing

NAMES = ("chromium", "chromium-browser", "google-chrome")


class Page:
    """One page: what it evaluates, what it wrote to the console, and which addresses it asked for."""

    def __init__(self, out: int, back: int) -> None:
        self._out, self._back, self._number, self._rest = out, back, 0, b""
        self.errors: list[str] = []
        self.requests: list[str] = []
        target = self._call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = self._call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def open(self, path: Path, ready: str = "document.readyState === 'complete'") -> None:
        """Load a file and wait until `ready` is true."""
        self.call("Page.navigate", {"url": path.resolve().as_uri()})
        self.run(
            "new Promise((good, bad) => { const end = Date.now() + 60000; const look = () => { "
            f"if ({ready}) good(1); else if (Date.now() > end) bad('not ready'); "
            "else setTimeout(look, 50) }; look() })"
        )

    def run(self, script: str) -> Any:
        """What a script's expression is, as JSON has it; a promise is awaited."""
        done = self.call("Runtime.evaluate", {"expression": script, "awaitPromise": True, "returnByValue": True})
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def move(self, x: float, y: float) -> None:
        """The mouse to a place of the window."""
        self.call("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})

    def press(self, key: str) -> None:
        """A key, by its name."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", {"type": kind, "key": key, "text": key if len(key) == 1 else ""})

    def picture(self) -> bytes:
        """What is seen, as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot")["data"])

    def call(self, method: str, parameters: dict[str, Any] | None = None) -> Any:
        """A method of the DevTools protocol on this page."""
        return self._call(method, parameters or {}, self._session)

    def _call(self, method: str, parameters: dict[str, Any], session: str = "") -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            chunk = os.read(self._back, 1 << 16)
            assert chunk, "the browser ended"
            self._rest += chunk
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        parameters = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(parameters["exceptionDetails"]))
        if message.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(str(parameters["entry"]))
        if message.get("method") == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "assert"):
            self.errors.append(str(parameters["args"]))
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(str(parameters["request"]["url"]))


@functools.cache
def _installed() -> str:
    """The first browser that starts. Ubuntu's package of Chromium is a script that names a snap and ends with 1."""
    starting = (name for name in NAMES if shutil.which(name) and _starts(name))
    return next(starting, None) or missing(f"no browser starts here: {' or '.join(NAMES)} is needed")


def _starts(name: str) -> bool:
    return subprocess.run([name, "--version"], check=False, capture_output=True, timeout=60).returncode == 0


@contextmanager
def browser(dark: bool = False) -> Iterator[Page]:
    """A browser with one page, ended afterwards."""
    name = _installed()
    there, back = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(prefix="nodeprint-browser-", ignore_cleanup_errors=True) as profile:
        words = [
            name,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
            "--window-size=1200,1000",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            *(["--force-dark-mode"] if dark else []),
            "about:blank",
        ]

        # the browser reads from 3 and writes to 4
        command = ["bash", "-c", f'exec "$@" 3<&{there[0]} 4>&{back[1]}', "browser", *words]
        process = subprocess.Popen(
            command, pass_fds=(there[0], back[1]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(there[0])
        os.close(back[1])
        try:
            yield Page(there[1], back[0])
        finally:
            os.close(there[1])
            process.terminate()
            process.wait(timeout=30)
            os.close(back[0])

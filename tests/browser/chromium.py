"""A real browser, driven through its own debugging protocol over a pair of pipes: nothing to install but it.

Messages are JSON ended by a zero byte; Chromium reads them from descriptor 3 and answers on descriptor 4.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
PATIENCE = 60.0
#: Puts two pipes where Chromium looks for them, and becomes it.
PIPES = """
import fcntl, os, sys
reads, writes = (fcntl.fcntl(int(pipe), fcntl.F_DUPFD, 10) for pipe in sys.argv[1:3])
os.dup2(reads, 3)
os.dup2(writes, 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""


def installed() -> str | None:
    """Where a Chromium is on this machine; CHROMIUM names another."""
    asked = os.environ.get("CHROMIUM")
    return asked or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """A running Chromium, with a profile of its own that goes with it."""

    def __init__(self, program: str) -> None:
        self.profile = tempfile.mkdtemp(prefix="calque-chromium-")
        reads, self.writes = os.pipe()
        self.reads, writes = os.pipe()
        line = [program, *FLAGS, f"--user-data-dir={self.profile}", "--remote-debugging-pipe", "about:blank"]
        started = [sys.executable, "-c", PIPES, str(reads), str(writes), *line]
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(started, pass_fds=(reads, writes), stdout=quiet, stderr=quiet)
        os.close(reads)
        os.close(writes)
        self.number, self.buffer, self.events = 0, b"", []

    def close(self) -> None:
        try:
            self.ask("Browser.close")
        except (OSError, TimeoutError, RuntimeError):
            self.process.kill()
        self.process.wait(PATIENCE)
        os.close(self.reads)
        os.close(self.writes)
        shutil.rmtree(self.profile, ignore_errors=True)

    def ask(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events on the way are kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.writes, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read(PATIENCE)
            if answer is None:
                raise TimeoutError(f"no answer to {method}")
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def rest(self, seconds: float) -> None:
        """Let it go on for a while, and keep what it tells."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            told = self._read(left)
            if told is not None:
                self.events.append(told)

    def _read(self, seconds: float) -> dict[str, Any] | None:
        until = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.reads], [], [], left)[0]:
                return None
            more = os.read(self.reads, 1 << 20)
            if not more:
                raise RuntimeError("the browser has ended")
            self.buffer += more
        told, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(told)

    @contextmanager
    def page(self, path: Path, *, width: int = 1200, height: int = 900, **media: str) -> Iterator["Page"]:
        """A file in a tab of its own, loaded."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        try:
            page.open(path, width, height, media)
            yield page
        finally:
            self.ask("Target.closeTarget", targetId=target)


class Page:
    """A tab: look at it, point at it, type, print, and hear what it complains of."""

    def __init__(self, browser: Browser, session: str) -> None:
        self.browser, self.session = browser, session

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        return self.browser.ask(method, self.session, **params)

    def open(self, path: Path, width: int, height: int, media: dict[str, str]) -> None:
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.size(width, height)
        self.media("", **media)
        self.ask("Page.navigate", url=path.resolve().as_uri())
        until = time.monotonic() + PATIENCE
        while not self._told("Page.loadEventFired"):
            if time.monotonic() > until:
                raise TimeoutError(f"{path} does not load")
            self.browser.rest(0.05)

    def size(self, width: int, height: int) -> None:
        narrow = width < 600
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if narrow else 1,
            mobile=narrow,
        )
        self.ask("Emulation.setTouchEmulationEnabled", enabled=narrow)

    def media(self, kind: str, **features: str) -> None:
        """Look at it as on paper (`print`), or as one who prefers something (color_scheme="dark")."""
        wanted = [
            {"name": f"prefers-{name.replace('_', '-')}", "value": value} for name, value in features.items()
        ]
        self.ask("Emulation.setEmulatedMedia", media=kind, features=wanted)

    def run(self, expression: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        answer = self.ask(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description"))
        return answer["result"].get("value")

    def middle(self, selector: str, place: int = 0) -> tuple[float, float]:
        """Where an element is on the screen, which is scrolled to it."""
        found = json.dumps(selector)
        return tuple(
            self.run(
                f"""(() => {{
                const one = document.querySelectorAll({found})[{place}];
                one.scrollIntoView({{block: "center", behavior: "instant"}});
                const at = one.getBoundingClientRect();
                return [at.x + at.width / 2, at.y + at.height / 2];
                }})()"""
            )
        )

    def hover(self, selector: str, place: int = 0) -> None:
        x, y = self.middle(selector, place)
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector: str, place: int = 0) -> None:
        x, y = self.middle(selector, place)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    def tap(self, selector: str, place: int = 0) -> None:
        x, y = self.middle(selector, place)
        self.ask("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.ask("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.browser.rest(0.4)

    def key(self, name: str) -> None:
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39, "End": 35}
        more = {"text": "\r"} if name == "Enter" else {}
        told = {"key": name, "code": name, "windowsVirtualKeyCode": codes[name]}
        self.ask("Input.dispatchKeyEvent", type="keyDown" if more else "rawKeyDown", **told, **more)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **told)

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        held = self.ask("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(held["data"]))

    def pdf(self) -> bytes:
        return base64.b64decode(self.ask("Page.printToPDF", printBackground=False)["data"])

    def complaints(self) -> list[str]:
        """Errors of the console, uncaught exceptions, and what the content policy forbade."""
        self.browser.rest(0.1)
        thrown = [told["exceptionDetails"]["text"] for told in self._told("Runtime.exceptionThrown")]
        said = [
            " ".join(str(one.get("value", one.get("description"))) for one in told["args"])
            for told in self._told("Runtime.consoleAPICalled")
            if told["type"] in ("error", "warning", "assert")
        ]
        logged = [told["entry"]["text"] for told in self._told("Log.entryAdded")]
        return thrown + said + logged

    def requests(self) -> list[str]:
        """Everything that was asked for, the page itself first."""
        return [told["request"]["url"] for told in self._told("Network.requestWillBeSent")]

    def _told(self, method: str) -> list[dict[str, Any]]:
        return [
            told["params"]
            for told in self.browser.events
            if told.get("sessionId") == self.session and told["method"] == method
        ]

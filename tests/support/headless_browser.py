"""A browser for tests of pages: Chromium without a window, driven through two pipes, with no library in between."""

import itertools
import json
import os
import shutil
import subprocess
import time
from collections import deque
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe")
FRAMES = "--disable-features=IsolateSandboxedIframes"  # in a process of their own they would be out of reach
PATIENCE = 20.0  # seconds for a page to become what a test waits for
READ, WRITE = 3, 4  # the descriptors that Chromium takes commands from and answers to
KEYS = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


def find_browser() -> str:
    """Return the browser's path, or skip the test."""
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("no Chromium here")
    return path


class HeadlessBrowser:
    """One tab; it notes what pages write to the console, which alerts they put up and which addresses they ask for."""

    def __init__(self, profile: Path) -> None:
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        self._process = subprocess.Popen(
            [find_browser(), *OPTIONS, FRAMES, f"--user-data-dir={profile}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(READ, WRITE),
            preexec_fn=lambda: _take(commands, answers),
        )
        os.close(commands)
        os.close(answers)
        self._numbers, self._rest, self._waiting = itertools.count(1), b"", deque[dict]()
        self.messages, self.alerts, self.requests = [], [], []
        target = next(one for one in self._ask("Target.getTargets")["targetInfos"] if one["type"] == "page")
        session = self._ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = session["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Performance"):
            self._ask(f"{domain}.enable")

    def __enter__(self) -> "HeadlessBrowser":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._commands)
        self._process.kill()
        self._process.wait()
        os.close(self._answers)

    def open(self, address: str) -> None:
        """Go to a page and wait until its script has run."""
        self._ask("Page.navigate", url="about:blank")
        self._ask("Page.navigate", url=address)
        self.wait_for(
            f"location.href !== 'about:blank' && document.readyState === 'complete' || {json.dumps(address)}===''"
        )

    def run(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self._ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise ValueError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def thread_seconds(self) -> float:
        """Return the processor time that the main thread of the page's process has taken so far."""
        return next(
            one["value"] for one in self._ask("Performance.getMetrics")["metrics"] if one["name"] == "ThreadTime"
        )

    def wait_for(self, expression: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                if self.run(expression):
                    return
            except ConnectionError:  # the page went away under the question
                continue
        raise TimeoutError(f"never true: {expression}")

    def text(self, selector: str) -> str:
        """Return the text that an element shows."""
        return self.run(f"document.querySelector({json.dumps(selector)}).innerText")

    def texts(self, selector: str) -> list[str]:
        """Return the texts of all elements that a selector finds and that are shown."""
        found = f"[...document.querySelectorAll({json.dumps(selector)})]"
        return self.run(f"{found}.filter((one) => one.checkVisibility()).map((one) => one.innerText)")

    def click(self, selector: str) -> None:
        """Click into the middle of an element, with the mouse."""
        box = f"document.querySelector({json.dumps(selector)})"
        self.run(f"{box}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        rect = self.run(
            f"(({{left, top, width, height}}) => [left + width / 2, top + height / 2])({box}.getClientRects()[0])"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self._ask("Input.dispatchMouseEvent", type=kind, x=rect[0], y=rect[1], button="left", clickCount=1)

    def press(self, *keys: str) -> None:
        """Press keys one after another."""
        for key in keys:
            told = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
            text = {"text": "\r"} if key == "Enter" else {}
            self._ask("Input.dispatchKeyEvent", type="keyDown", **told, **text)
            self._ask("Input.dispatchKeyEvent", type="keyUp", **told)

    def type_into(self, selector: str, text: str) -> None:
        """Type a text into a field in place of what it holds."""
        self.run(f"document.querySelector({json.dumps(selector)}).select()")
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        self._ask("Input.insertText", text=text)

    def resize(self, width: int, height: int) -> None:
        """Make the window as wide as a phone's, or a desk's."""
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def scheme(self, colours: str) -> None:
        """Have pages believe that the reader prefers `light` ones, or `dark` ones."""
        self._ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": colours}])

    def medium(self, name: str) -> None:
        """Have pages believe that they are on `screen`, or on paper: `print`."""
        self._ask("Emulation.setEmulatedMedia", media=name)

    def run_scripts(self, allowed: bool) -> None:
        """Let pages run their scripts, or not."""
        self._ask("Emulation.setScriptExecutionDisabled", value=not allowed)

    def forget(self) -> None:
        """Forget what was noted so far."""
        self.run("0")  # takes in what was told meanwhile
        self.messages, self.alerts, self.requests = [], [], []

    def frame_text(self) -> str:
        """Return the text in the page's only frame, whatever its origin."""
        return self.run_in_frame("document.body.innerText")

    def run_in_frame(self, expression: str) -> Any:
        """Return the value of an expression in the page's only frame, whatever its origin."""
        (frame,) = self._ask("Page.getFrameTree")["frameTree"]["childFrames"]
        world = self._ask("Page.createIsolatedWorld", frameId=frame["frame"]["id"])["executionContextId"]
        return self._ask("Runtime.evaluate", expression=expression, contextId=world)["result"].get("value")

    def _ask(self, method: str, **params: Any) -> dict:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if hasattr(self, "_session"):
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise ConnectionError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def _next(self) -> dict:
        while b"\0" not in self._rest:
            block = os.read(self._answers, 1 << 20)
            if not block:
                raise EOFError("the browser has gone")
            self._rest += block
        one, self._rest = self._rest.split(b"\0", 1)
        return json.loads(one)

    def _note(self, event: dict) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Page.javascriptDialogOpening":
            self.alerts.append(params["message"])
            message = {"id": next(self._numbers), "method": "Page.handleJavaScriptDialog", "params": {"accept": True}}
            os.write(self._commands, json.dumps({**message, "sessionId": self._session}).encode() + b"\0")
        elif method == "Runtime.consoleAPICalled":
            self.messages.append(" ".join(str(one.get("value")) for one in params["args"]))
        elif method == "Runtime.exceptionThrown":
            self.messages.append(json.dumps(params["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.messages.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])


def _take(commands: int, answers: int) -> None:
    """Give the two pipes the numbers that Chromium expects; high ones first, since they may have each other's."""
    os.dup2(commands, 103)
    os.dup2(answers, 104)
    os.dup2(103, READ)
    os.dup2(104, WRITE)

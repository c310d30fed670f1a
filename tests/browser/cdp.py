# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven over its DevTools protocol with nothing but Python's own library.

The protocol is JSON over a WebSocket (RFC 6455); its description:
https://chromedevtools.github.io/devtools-protocol/
"""

import base64
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-port=0",
]


class WebSocket:
    """The client's side of one connection; text messages only."""

    def __init__(self, host, port, path):
        self.socket = socket.create_connection((host, port), timeout=30)
        self.buffer = b""
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((
            f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        ).encode())
        while b"\r\n\r\n" not in self.buffer:
            self._more()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise ConnectionError(head.decode(errors="replace"))

    def _more(self):
        piece = self.socket.recv(1 << 20)
        if not piece:
            raise ConnectionError("the browser closed the connection")
        self.buffer += piece

    def _take(self, length):
        while len(self.buffer) < length:
            self._more()
        taken, self.buffer = self.buffer[:length], self.buffer[length:]
        return taken

    def send(self, text):
        data = text.encode()
        head = b"\x81"
        if len(data) < 126:
            head += bytes([0x80 | len(data)])
        elif len(data) < 65536:
            head += b"\xfe" + struct.pack(">H", len(data))
        else:
            head += b"\xff" + struct.pack(">Q", len(data))
        # A mask of zeros is allowed and saves the work: nobody but this browser reads it.
        self.socket.sendall(head + b"\0\0\0\0" + data)

    def receive(self, timeout):
        """One message, or None when none has begun after so many seconds."""
        message = b""
        while True:
            self.socket.settimeout(timeout if not self.buffer and not message else 30)
            try:
                first, second = self._take(2)
            except (socket.timeout, TimeoutError):
                return None
            self.socket.settimeout(30)
            length = second & 0x7F
            if length == 126:
                length = struct.unpack(">H", self._take(2))[0]
            elif length == 127:
                length = struct.unpack(">Q", self._take(8))[0]
            data = self._take(length)
            if first & 0x0F in (0, 1):
                message += data
                if first & 0x80:
                    return message.decode()

    def close(self):
        self.socket.close()


class Browser:
    """One browser with one page. Use it with `with`."""

    def __init__(self, width=1400, height=850):
        self.folder = tempfile.mkdtemp(prefix="farflame-browser-")
        self.process = subprocess.Popen(
            [shutil.which("chromium") or "chromium", *FLAGS, f"--user-data-dir={self.folder}",
             f"--window-size={width},{height}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            port, path = self._address()
            self.socket = WebSocket("127.0.0.1", port, path)
            self.number = 0
            self.session = None
            self.events = []
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self.session = self.call("Target.attachToTarget", targetId=target,
                                     flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(domain + ".enable")
            self.resize(width, height)
        except BaseException:
            self.close()
            raise

    def _address(self):
        name = os.path.join(self.folder, "DevToolsActivePort")
        for _ in range(300):
            if self.process.poll() is not None:
                raise RuntimeError("chromium ended at once")
            try:
                with open(name, encoding="ascii") as file:
                    lines = file.read().split("\n")
                if len(lines) >= 2:
                    return int(lines[0]), lines[1]
            except FileNotFoundError:
                pass
            time.sleep(0.1)
        raise RuntimeError("chromium did not open its DevTools port within 30 s")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if getattr(self, "socket", None) is not None:
            self.socket.close()
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        end = time.monotonic() + 60
        while time.monotonic() < end:
            text = self.socket.receive(1)
            if text is None:
                continue
            answer = json.loads(text)
            if answer.get("id") != self.number:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            else:
                return answer["result"]
        raise TimeoutError(method)

    def resize(self, width, height, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=scale, mobile=False)

    def go(self, url):
        # Leaving first makes it a load even where only the part after '#' differs.
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)

    def run(self, expression):
        """The value of a JavaScript expression in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"])[:500])
        return result["result"].get("value")

    def wait(self, expression, seconds=20):
        """True as soon as the expression is; False when it never was."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if self.run(f"Boolean({expression})"):
                    return True
            except RuntimeError:
                pass  # between two documents
            time.sleep(0.05)
        return False

    def key(self, key, text=None, modifiers=0):
        if text is None and len(key) == 1:
            text = key
        codes = {"Enter": 13, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40, "ArrowLeft": 37,
                 "ArrowRight": 39, "Home": 36, "Tab": 9}
        common = {"key": key, "windowsVirtualKeyCode": codes.get(key, ord(key[0].upper())),
                  "modifiers": modifiers}
        self.call("Input.dispatchKeyEvent", type="keyDown", **common,
                  **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text):
        for letter in text:
            self.key(letter)

    def mouse(self, x, y, button=None):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        if button is not None:
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button,
                          clickCount=1)

    def screenshot(self, name):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(name, "wb") as file:
            file.write(base64.b64decode(data))

    def complaints(self):
        """What the page put on the console as an error, and exceptions nobody caught.

        A request that failed on purpose is logged by the browser itself: "network: …".
        """
        self.run("0")
        out = []
        for event in self.events:
            details = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                out.append(json.dumps(details["exceptionDetails"])[:400])
            elif event.get("method") == "Runtime.consoleAPICalled" and details["type"] == "error":
                out.append(json.dumps(details["args"])[:400])
            elif event.get("method") == "Log.entryAdded" and details["entry"]["level"] == "error":
                out.append(f"{details['entry']['source']}: {details['entry']['text']}")
        return out

    def requests(self):
        """URLs the page asked for."""
        self.run("0")
        return [event["params"]["request"]["url"] for event in self.events
                if event.get("method") == "Network.requestWillBeSent"]

    def forget(self):
        self.events.clear()

# SPDX-License-Identifier: Apache-2.0
"""The web page in the words of its tests, and what has to hold whatever server it came from.

SHOTS=DIR leaves screenshots there.
"""

import atexit
import os
import shutil
import sys
import urllib.parse

import cdp

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))

from harness import check, skip_all  # noqa: E402


def open_browser():
    """A browser that is gone when the test is."""
    if shutil.which("chromium") is None:
        skip_all("chromium is not installed")
    browser = cdp.Browser()
    atexit.register(browser.close)
    return browser


class Page:
    """The page in the browser, in the words of the tests."""

    def __init__(self, browser, base):
        self.browser = browser
        self.base = base
        self.run = browser.run
        self.wait = browser.wait

    def open(self, seconds=20, **state):
        self.browser.forget()
        choice = urllib.parse.urlencode(state)
        self.browser.go(self.base + ("#" + choice if choice else ""))
        return self.wait("document.body && document.body.dataset.shown >= 1", seconds)

    def data(self, name):
        return self.run(f"document.body.dataset.{name}")

    def text(self, selector):
        return self.run(f"document.querySelector('{selector}').innerText")

    def wait_text(self, selector, text):
        return self.wait(f"document.querySelector('{selector}').innerText.includes('{text}')")

    def visible(self, selector):
        return self.run(f"(e => !!e && e.getClientRects().length > 0)"
                        f"(document.querySelector('{selector}'))")

    def count(self, selector):
        return self.run(f"document.querySelectorAll('{selector}').length")

    def click(self, selector, button="left"):
        x, y = self.run(f"(r => [r.left + r.width / 2, r.top + r.height / 2])"
                        f"(document.querySelector('{selector}').getBoundingClientRect())")
        self.browser.mouse(x, y, button)

    def point(self, level, share, button=None):
        """Points at the graph: so many levels below the root, at this part of its width."""
        x, y = self.run("(r => [r.left, r.top])(document.getElementById('flame-canvas')"
                        ".getBoundingClientRect())")
        width = self.run("document.getElementById('flame-canvas').clientWidth")
        self.browser.mouse(x + width * share, y + 19 * level + 9, button)

    def colours(self):
        """How many different colours the canvas has, and the share of pixels unlike the ground."""
        return self.run("""(() => {
          const c = document.getElementById('flame-canvas');
          const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
          const seen = new Map();
          for (let i = 0; i < d.length; i += 4) {
            const k = d[i] << 16 | d[i + 1] << 8 | d[i + 2];
            seen.set(k, (seen.get(k) || 0) + 1);
          }
          const ground = d.length - 4;
          const g = d[ground] << 16 | d[ground + 1] << 8 | d[ground + 2];
          return [seen.size, 1 - seen.get(g) / (d.length / 4)];
        })()""")

    def shot(self, name):
        if os.environ.get("SHOTS"):
            self.browser.screenshot(os.path.join(os.environ["SHOTS"], name + ".png"))

    def quiet(self):
        """No complaint on the console besides requests that fail on purpose."""
        return [c for c in self.browser.complaints() if not c.startswith("network:")]


def test_any_data(page, text):
    """What holds for every server with samples."""
    check(page.open(**{"from": "now-24h"}), f"{text}: opens and draws")
    complaints = page.browser.complaints()
    check(complaints == [], f"{text}: no error on the console", complaints)
    host = urllib.parse.urlsplit(page.base).netloc
    outside = [u for u in page.browser.requests()
               if not u.startswith(("data:", "about:")) and urllib.parse.urlsplit(u).netloc != host]
    check(outside == [], f"{text}: asks no other host", outside)
    kinds, drawn = page.colours()
    check(kinds > 5 and drawn > 0.01, f"{text}: the canvas has frames on it", (kinds, drawn))
    check(page.count("#top-body tr") > 0, f"{text}: the table has functions")
    check("samples" in page.text("#stat-samples"), f"{text}: the accounting says samples")
    page.browser.key("ArrowDown")
    page.browser.key("ArrowDown")
    page.browser.key("ArrowDown")
    page.browser.key("Enter")
    check(page.wait("document.body.dataset.zoom !== ''"), f"{text}: keys select and zoom")
    path = page.data("zoom")
    page.browser.key("Home")
    check(page.wait("document.body.dataset.zoom === ''"), f"{text}: Home shows all")
    name = path.split(";")[-1]
    page.browser.key("/")
    page.browser.call("Input.insertText", text="^" + "".join(
        c if c.isalnum() or c == "_" else "." for c in name) + "$")
    check(page.wait("/%/.test(document.getElementById('search-result').innerText)"),
          f"{text}: a name of the graph is found", page.text("#search-result"))
    check(page.run("location.hash.includes('search=')"), f"{text}: the search is in the address")
    page.shot(text.replace(" ", "-"))

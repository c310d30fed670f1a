# SPDX-License-Identifier: Apache-2.0
"""The picture and the page of /flamegraph?format=svg and html in a real browser, opened as files without a network:
zoom, search, figures, and names that would like to be scripts."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))

from page import check, open_browser  # noqa: E402
from harness import WORK, Server, equal, run  # noqa: E402
from formats_test import HOSTILE, WHEN_NS, Request, hostile_report  # noqa: E402
from harness import BUILD  # noqa: E402

PERIOD = 10101010
SVG_FRAMES = "[...document.querySelectorAll('#frames > g')]"
SHOTS = os.environ.get("SHOTS")


def plain_report():
    made = Request(BUILD)
    library = made.mapping("libwork.so.1", "ab" * 20)
    profile = made.profile(made.resource(**{"host.name": "one", "farflame.process": "worker"}), time_ns=WHEN_NS)
    main = [("cpython", "main", "/srv/main.py", 1), ("native", library, 0x40)]
    made.sample(profile, [("cpython", "parse", "/srv/parse.py", 10)] + main, [60, 60 * PERIOD])
    made.sample(profile, [("cpython", "read_it", "/srv/io.py", 5), ("cpython", "parse", "/srv/parse.py", 12)] + main,
                [20, 20 * PERIOD])
    made.sample(profile, [("cpython", "read_it", "/srv/io.py", 5)] + main, [15, 15 * PERIOD])
    made.sample(profile, [("cpython", "tiny", "/srv/tiny.py", 5)] + main, [5, 5 * PERIOD], incomplete="no end")
    made.counters("one", "11" * 16, 1, 0, 104, time_ns=WHEN_NS, ring_full=4)
    return made.bytes()


def files(data, body):
    """Asks one server of its own for both; what they are as addresses."""
    server = Server(data=data)
    equal(server.post(body)[0], 200, "the report is taken")
    out = [server]
    for format_ in ("svg", "html"):
        path = os.path.join(WORK, "%s.%s" % (data, format_))
        with open(path, "wb") as file:
            file.write(server.get("/api/v1/flamegraph", format=format_)[2])
        out.append("file://" + path)
    return out


def opened(url, ready):
    browser.forget()
    browser.go(url)
    return check(browser.wait(ready), "%s opens" % url.rsplit("/", 1)[1], browser.complaints())


def quiet(what):
    strange = [url for url in browser.requests() if not url.startswith(("file://", "data:", "about:"))]
    equal((browser.complaints(), strange), ([], []), "%s: no complaints, nothing asked of a network" % what)


def shot(name):
    if SHOTS:
        browser.screenshot(os.path.join(SHOTS, name + ".png"))


def center(expression):
    box = browser.run("(b => [b.x + b.width / 2, b.y + b.height / 2])((%s).getBoundingClientRect())" % expression)
    return box[0], box[1]


def svg_frame(name):
    return SVG_FRAMES + ".find(g => g.querySelector('title').textContent.startsWith('%s'))" % name


def svg_width(name):
    return browser.run("+%s.querySelector('rect').getAttribute('width')" % svg_frame(name))


def picture():
    _, url, _ = files("plain", plain_report())
    opened(url, "document.querySelector('input')")
    shot("svg")
    equal(browser.run(SVG_FRAMES + ".length"), 11, "svg: a frame for each node")
    check(abs(svg_width("parse") - 1180 * 0.8) < 0.01, "svg: 80 %% of the value, 80 %% of the width", svg_width("parse"))
    browser.mouse(*center(svg_frame("parse") + ".querySelector('rect')"))
    details = "document.getElementById('details').textContent"
    check(browser.wait(details + ".includes('parse')") and "80.0 %" in browser.run(details) and
          "/srv/parse.py:1" in browser.run(details), "svg: what is under the pointer", browser.run(details))
    browser.mouse(*center(svg_frame("parse") + ".querySelector('rect')"), "left")
    check(browser.wait("document.documentElement.dataset.zoom === 'parse'"), "svg: a click zooms")
    widths = browser.run(SVG_FRAMES + ".filter(g => g.style.display !== 'none').map(g => "
                         "Math.round(g.querySelector('rect').getAttribute('width')))")
    equal(widths, [1180, 1180, 1180, 1180, 1180, 295], "svg: the frame and its callers fill the width")
    equal(browser.run(svg_frame("tiny") + ".style.display"), "none", "svg: others are gone")
    shot("svg-zoom")
    browser.key("Escape")
    check(browser.wait("document.documentElement.dataset.zoom === 'all'") and abs(svg_width("parse") - 944) < 0.01,
          "svg: Escape zooms back")
    browser.key("/")
    browser.type("^read")
    browser.mouse(5, 5)
    check(browser.wait(details + " === 'found: 35.0 % in 2 frames'"), "svg: search", browser.run(details))
    equal(browser.run("document.querySelectorAll('#frames .hit').length"), 2, "svg: both stand out")
    shot("svg-search")
    browser.key("Escape")
    check(browser.wait("!document.querySelector('.hit')"), "svg: Escape ends the search")
    words = browser.run("document.documentElement.textContent")
    check("100 samples of 1 host; taken 104, lost 4 (3.85 %)" in words and "4 ring_full" in words and "5 no end" in words,
          "svg: the accounting is printed", words[-900:-200])
    quiet("svg")


def point(level, part):
    box = browser.run("(b => [b.x, b.y, b.width])(document.getElementById('flame-canvas').getBoundingClientRect())")
    return box[0] + part * box[2], box[1] + level * 19 + 9


def text(selector):
    return browser.run("document.querySelector('%s').innerText" % selector)


def page():
    _, _, url = files("page", plain_report())
    opened(url, "document.body.dataset.shown")
    shot("html")
    check("1.01 s" in text("#title") and "100" in text("#accounting") and "ring_full" in text("#accounting") and
          "no end" in text("#accounting"), "html: total and accounting", text("#accounting"))
    names = browser.run("[...document.querySelectorAll('#functions .name')].map(e => e.innerText)")
    equal(names[:2], ["parse", "read_it"], "html: functions, the hottest first")
    browser.run("document.getElementById('by-total').click()")
    names = browser.run("[...document.querySelectorAll('#functions .name')].map(e => e.innerText)")
    equal(names[2], "parse", "html: by what they call, too")
    browser.mouse(*point(4, 0.1))
    check(browser.wait("!document.getElementById('hover-card').hidden") and "parse" in text("#hover-card") and
          "80.0 %" in text("#hover-card"), "html: what is under the pointer", text("#hover-card"))
    browser.mouse(*point(4, 0.1), "left")
    check(browser.wait("document.body.dataset.zoom.endsWith('main;parse')"), "html: a click zooms",
          browser.run("document.body.dataset.zoom"))
    browser.key("/")
    browser.type("^read")
    check(browser.wait("document.getElementById('search-result').innerText === '25.0 % in 1 frame'"), "html: search in the zoom",
          text("#search-result"))
    browser.key("Escape")
    equal(browser.run("document.body.dataset.zoom"), "", "html: Escape zooms back")
    browser.key("/")
    browser.type("^read")
    check(browser.wait("document.getElementById('search-result').innerText === '35.0 % in 2 frames'"), "html: search",
          text("#search-result"))
    equal(browser.run("document.querySelectorAll('#functions tr').length"), 1, "html: the table too")
    shot("html-search")
    quiet("html")


def hostile():
    server, svg, html = files("hostile", hostile_report())
    for what, url, ready in (("svg", svg, "document.querySelector('input')"),
                             ("html", html, "document.body.dataset.shown")):
        opened(url, ready)
        shot("hostile-" + what)
        equal(browser.run("String(window.pwned)"), "undefined", "%s: no name became a script" % what)
        quiet("hostile " + what)
    titles = browser.run("JSON.parse(document.getElementById('profile').textContent).graph.names")
    check(HOSTILE[0] in titles and HOSTILE[2] in titles and HOSTILE[13][:2] in "".join(titles),
          "html: the names are all there", titles[:5])
    for format_ in ("svg", "html"):
        browser.forget()
        browser.go(server.url + "/api/v1/flamegraph?format=" + format_)
        check(browser.wait("document.querySelector('input')"), "%s: the policy that the server sends lets our script run" %
              format_, browser.complaints())
        equal((browser.run("String(window.pwned)"), browser.complaints()), ("undefined", []), "%s: and no other" % format_)


browser = open_browser()
run(picture, page, hostile)

# SPDX-License-Identifier: Apache-2.0
"""The web page in a real browser, against answers written for these tests."""

import os
import sys
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import fake_server  # noqa: E402
from page import Page, check, open_browser, test_any_data  # noqa: E402
from harness import BUILD, run  # noqa: E402

FIRST_PAINT_MS = 200  # budgets of the design; the slack is for a busy machine without a GPU
ZOOM_MS = 33
SLACK = 5


def look():
    page.open()
    lost = page.text("#stat-lost").replace("\n", "")
    check(lost == "!lost 12 (1.17 %)", "losses are shown with a sign", lost)
    page.run("document.getElementById('stat-lost').focus()")
    tip = page.text("#tip")
    check("9: the kernel's ring buffer was full" in tip and "3: the agent's queue" in tip,
          "a tip says why samples were lost", tip)
    incomplete = page.text("#stat-incomplete")
    check(incomplete == "incomplete 3.64 % mostly code without frame pointers",
          "incomplete share and the reason of most", incomplete)
    page.run("document.getElementById('stat-incomplete').focus()")
    tip = page.text("#tip")
    check("2.95 % code without frame pointers — in libssl.so.3 80.0 %, " + "cd" * 20 + " 20.0 %" in tip and
          "0.69 % 32-bit process" in tip, "a tip has all reasons and the modules behind each", tip)
    check(page.text("#stat-unsymbolized") == "unsymbolized 5.71 %", "unsymbolized share",
          page.text("#stat-unsymbolized"))
    check(page.text("#stat-value") == "10.3 s · avg 0.003 CPUs", "value in human units",
          page.text("#stat-value"))
    check(page.count("#process option") == 4, "processes to choose from")
    check("[k] kernel" in page.text("#legend"), "the legend names the kernel's mark")

    # The middle of level 8 under the left part: skip_space, inlined.
    page.point(8, 0.05)
    page.point(7, 0.05)
    card = page.text("#hover-card")
    check("skip_space() (inlined)" in card and "src/json.cc:88" in card and "28.6 %" in card,
          "hovering tells name, mark, line and share of the caller", card)
    check("api-server" in card and fake_server.MODULES[0]["build_id"] in card,
          "and module and build-id", card)
    page.point(8, 0.71)
    check("[k] tcp_sendmsg_locked" in page.text("#hover-card"), "kernel frames carry [k]",
          page.text("#hover-card"))
    page.shot("hover")

    ordered = page.run("[...document.querySelectorAll('#top-body td.name button')].map(b => b.title"
                       ".split('\\n')[0])")
    check(ordered[0].startswith("json::Parser") and ordered[0].endswith("parse_value(int)"),
          "table: hottest by self first", ordered[:2])
    page.click("#top-by-total")
    first = page.text("#top-body td.name button")
    check(first == "_start" or first == "main", "table: sorts by total", first)
    page.run("(f => { f.value = 'vmlinux'; f.dispatchEvent(new Event('input')) })"
             "(document.getElementById('top-filter'))")
    check(page.count("#top-body tr") == 5, "table: filters by module", page.count("#top-body tr"))

    page.browser.call("Emulation.setEmulatedMedia",
                      features=[{"name": "prefers-color-scheme", "value": "dark"}])
    check(page.wait("document.documentElement.dataset.theme === 'dark'"), "dark as the system is")
    page.shot("dark")
    page.browser.call("Emulation.setEmulatedMedia", features=[])
    page.browser.resize(1400, 850, 2)
    check(page.wait("document.getElementById('flame-canvas').width === "
                    "2 * document.getElementById('flame-canvas').clientWidth"),
          "sharp on a screen of twice the density")
    page.shot("dense")
    page.browser.resize(1400, 850)
    check(page.quiet() == [], "no complaints", page.quiet())


def choices():
    page.open()
    server.asked.clear()
    page.run("(s => { s.value = 'worker;odd\\\\name'; s.dispatchEvent(new Event('change')) })"
             "(document.getElementById('process'))")
    page.wait("document.body.dataset.shown >= 2")
    asked = [q.get("match") for path, q in server.asked if path.endswith("flamegraph")]
    check(asked == ['{process="worker;odd\\\\name"}'], "a process becomes a selector", asked)
    page.click("#more summary")
    check(page.visible("#match"), "More opens")
    page.shot("more")
    page.browser.key("Escape")
    check(not page.run("document.getElementById('more').open"), "Escape closes it")
    page.run("(s => { s.value = 'custom'; s.dispatchEvent(new Event('change')) })"
             "(document.getElementById('range'))")
    page.run("document.getElementById('custom-from').value = '2026-01-02T03:04:05'")
    page.run("document.getElementById('custom-until').value = '2026-01-02T04:04:05'")
    server.asked.clear()
    page.shot("custom")
    page.click("#custom-range button")
    page.wait("document.body.dataset.shown >= 3")
    asked = [(int(q["from"]), int(q["until"])) for path, q in server.asked
             if path.endswith("flamegraph")]
    check(len(asked) == 1 and asked[0][1] - asked[0][0] == 3600000, "an hour of one's own", asked)
    page.open(**{"from": "now-2h"})
    check(page.run("document.getElementById('range').value") == "now-2h" and
          not page.visible("#custom-range"), "another relative time of the address is kept")
    page.browser.resize(900, 800)
    page.wait("document.getElementById('flame-canvas').clientWidth > 700")
    page.shot("narrow")
    page.browser.resize(1400, 850)
    check(page.quiet() == [], "no complaints", page.quiet())


def zoom():
    page.open()
    page.point(6, 0.2, "left")
    check(page.wait("document.body.dataset.zoom.endsWith('parse_value(int)')"), "a click zooms",
          page.data("zoom"))
    hash_text = page.run("location.hash")
    check("zoom=" in hash_text, "the zoom is in the address")
    page.point(3, 0.9, "left")
    check(page.wait("document.body.dataset.zoom.endsWith('_start;main')"),
          "a click on a caller zooms out to it", page.data("zoom"))
    page.browser.key("Escape")
    check(page.wait("document.body.dataset.zoom === 'api-server'"),
          "Escape goes to the next wider caller", page.data("zoom"))
    page.browser.key("Escape")
    check(page.wait("document.body.dataset.zoom === ''"), "and to all", page.data("zoom"))
    page.run("history.back()")
    check(page.wait("document.body.dataset.zoom === 'api-server'"), "Back undoes it",
          page.data("zoom"))
    page.browser.go(page.base + hash_text)
    check(page.wait("document.body.dataset.zoom && "
                    "document.body.dataset.zoom.endsWith('parse_value(int)')"),
          "the address opens the same picture")
    page.click("#trail button")
    check(page.wait("document.body.dataset.zoom === ''"), "the trail leads back")
    page.open(zoom="worker\\;odd\\\\name;spin")
    check(page.data("zoom") == "worker;odd\\name;spin",
          "';' and '\\' inside names survive the address", page.data("zoom"))


def search():
    page.open()
    page.browser.key("/")
    check(page.run("document.activeElement.id") == "search", "/ goes to the search")
    page.browser.call("Input.insertText", text="entry_syscall")
    check(page.wait("document.getElementById('search-result').innerText === '17.6 % · 2 frames'"),
          "two frames, 179 of 1016 samples", page.text("#search-result"))
    page.browser.key("Escape")
    check(page.wait("document.getElementById('search').value === ''"), "Escape ends the search")
    page.browser.key("/")
    page.browser.call("Input.insertText", text="server::")
    check(page.wait("document.getElementById('search-result').innerText === '77.8 % · 2 frames'"),
          "a match inside a match counts once", page.text("#search-result"))
    page.browser.key("Enter")
    check(page.wait("document.body.dataset.selected === 'server::EventLoop::run(int)'"),
          "Enter goes to the first match", page.data("selected"))
    page.run("document.getElementById('flame-scroller').focus()")
    page.browser.key("n")
    check(page.wait("document.body.dataset.selected.startsWith('server::Connection')"),
          "n to the next", page.data("selected"))
    check("2 of 2" in page.text("#search-result"), "and says which", page.text("#search-result"))
    page.browser.key("N")
    check(page.wait("document.body.dataset.selected.startsWith('server::EventLoop')"),
          "N to the one before", page.data("selected"))
    page.open(search="(")
    check("odd" in page.run("document.getElementById('search').className") and
          "letter by letter" in page.run("document.getElementById('search').title"),
          "what is no expression is said to be none, and looked for as it stands")
    page.open()
    page.click("#top-body tr td.number")
    check(page.wait("location.hash.includes('search=')") and
          page.wait("document.getElementById('search-result').innerText === '41.2 % · 1 frame'"),
          "a click in the table searches the function", page.text("#search-result"))
    page.shot("search")
    check(page.quiet() == [], "no complaints", page.quiet())


def menu():
    page.open()
    page.point(6, 0.2, "right")
    check(page.visible("#frame-menu"), "the right button opens a menu")
    page.browser.key("ArrowDown")
    check(page.run("document.activeElement.innerText").startswith("Copy name"), "arrows move in it",
          page.run("document.activeElement.innerText"))
    page.browser.key("Escape")
    check(not page.visible("#frame-menu"), "Escape closes it")
    page.point(6, 0.2, "right")
    server.asked.clear()
    page.run("[...document.querySelectorAll('#frame-menu button')]"
             ".find(b => b.innerText.startsWith('Hide')).click()")
    page.wait("document.body.dataset.shown >= 2")
    hidden = [q.get("hide") for path, q in server.asked if path.endswith("flamegraph")]
    want = r"^json::Parser<char, std::allocator<char> >::parse_value\(int\)$"
    check(hidden == [want], "Hide asks the server without the function", hidden)
    check(page.count("#filters button") == 1, "the filter is shown")
    page.click("#filters button")
    page.wait("document.body.dataset.shown >= 3")
    check("hide" not in server.asked[-1][1] and page.count("#filters button") == 0,
          "and goes by a click")
    page.browser.key("?")
    check(page.visible("#help-dialog"), "? explains")
    page.click("#help-dialog form button")
    check(not page.visible("#help-dialog"), "its button closes it")
    page.click("#stat-unsymbolized")
    check(page.wait_text("#modules-body", "no source has it"), "modules without names, and why",
          page.text("#modules-body"))
    page.shot("modules")
    page.browser.key("Escape")
    check(page.quiet() == [], "no complaints", page.quiet())


def keys():
    page.open()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown"):
        page.browser.key(key)
    check(page.data("selected") == "_start", "down goes to the widest callee",
          page.data("selected"))
    page.browser.key("ArrowRight")
    check(page.data("selected").startswith("[incomplete"), "right to the neighbour",
          page.data("selected"))
    spoken = page.text("#spoken")
    check("incomplete frame" in spoken and "total 3.64 %" in spoken, "it is spoken", spoken)
    page.browser.key("ArrowUp")
    check(page.data("selected") == "api-server", "up to the caller", page.data("selected"))
    page.browser.key("Enter")
    check(page.wait("document.body.dataset.zoom === 'api-server'"), "Enter zooms")
    page.browser.key("t")
    check(page.wait("document.getElementById('main').dataset.view === 'graph'") and
          not page.visible("#table-side"), "t: graph only")


def states():
    page.open(service="empty")  # draws nothing, so never "shown"
    check(page.wait_text("#message", "filters"),
          "empty with filters: says so", page.text("#message"))
    server.broken = True
    page.browser.go(page.base)
    check(page.wait_text("#message", "cannot be reached"),
          "server away: says so", page.text("#message"))
    server.broken = False
    page.click("#message button")
    check(page.wait("document.body.dataset.shown >= 1"), "Try again does")
    server.broken = True
    page.browser.key("r")
    check(page.wait_text("#banner", "cannot be reached") and page.colours()[0] > 5,
          "away later: the picture stays, with a banner", page.text("#banner"))
    page.shot("banner")
    server.broken = False
    page.open(service="error", seconds=1)
    check("a quote is missing" in page.text("#message"), "the server's own sentence is shown",
          page.text("#message"))
    page.open(service="html", seconds=1)
    check("status 502" in page.text("#message"), "a proxy's page is not", page.text("#message"))
    page.open(service="damaged", seconds=1)
    check("damaged: column parent, node 5" in page.text("#message"), "a damaged answer is refused",
          page.text("#message"))
    page.browser.go(page.base + "#service=slow")
    check(page.wait("document.getElementById('message').innerText === 'Loading…'", 5),
          "a slow answer: loading")
    check(page.wait("document.body.dataset.shown >= 1"), "and then the picture")
    check(page.quiet() == [], "no complaints", page.quiet())


def no_agent():
    page.open(service="", host="", process="", match='service="empty"', seconds=1)
    page.run("document.querySelector('#message button').click()")
    check(page.wait("document.body.dataset.shown >= 1"), "clearing the filters helps")
    page.browser.go(page.base + "#match=" + urllib.parse.quote('service="empty"'))
    check(page.wait_text("#message", "farflame-agent --server"),
          "no agent known: says how to start one", page.text("#message"))
    page.shot("empty")


def detail():
    page.open(service="cut")
    check(page.text("#stat-cut") == "cut 60.0 %", "the cut is shown", page.text("#stat-cut"))
    server.asked.clear()
    page.point(3, 0.3, "left")
    check(page.wait("document.body.dataset.detail === '6'"), "zooming into a cut subtree loads it",
          page.data("detail"))
    roots = [q.get("root") for path, q in server.asked if path.endswith("flamegraph")]
    check(roots == ["job;outer;wide"], "asked for by its path", roots)
    page.point(4, 0.3)
    card = page.text("#hover-card")
    check("fine_a" in card and "45.0 % of all" in card and "75.0 % of its caller" in card,
          "shares are of the whole picture, not of the subtree", card)
    page.browser.key("Escape")
    check(page.wait("document.body.dataset.zoom === ''"), "zooming out")
    page.point(3, 0.8)
    check("other" in page.text("#hover-card"), "shows the whole picture again",
          page.text("#hover-card"))


    page.open(service="cut", zoom="job;outer;wide;fine_b")
    check(page.wait("document.body.dataset.zoom === 'job;outer;wide;fine_b'"),
          "an address leads to where only the finer answer reaches", page.data("zoom"))


def hostile():
    page.open(service="hostile")
    page.browser.key("ArrowDown")
    page.browser.key("ArrowDown")
    page.browser.key("ArrowDown")
    page.browser.key("Enter")
    page.run("document.getElementById('stat-lost').focus()")
    page.point(2, 0.5)
    page.browser.key("m")
    check(page.count("img, #frame-strip b, .card b") == 0 and page.data("owned") is None,
          "names from strangers stay text")
    check(page.wait("document.body.dataset.zoom.includes('onerror')"), "and can be zoomed into")
    page.browser.key("Escape")
    page.run("document.querySelector('#top-body tr').click()")
    check(page.wait("document.getElementById('search-result').innerText.startsWith('100 %')"),
          "and searched", page.text("#search-result"))
    check(page.quiet() == [], "no complaints", page.quiet())


def names_coming():
    server.modules = [dict(fake_server.MODULE_STATES[0], state="converting")]
    page.open()
    check(page.wait_text("#stat-unsymbolized", "names are coming"),
          "while names are on their way: says so", page.text("#stat-unsymbolized"))
    check(page.wait("document.body.dataset.shown >= 2", 10), "and asks again by itself")
    server.modules = fake_server.MODULE_STATES
    page.wait("document.body.dataset.shown >= 3", 10)
    check(not page.wait("document.body.dataset.shown >= 4", 4) and
          page.text("#stat-unsymbolized") == "unsymbolized 5.71 %",
          "until none is coming any more", page.text("#stat-unsymbolized"))


def refresh():
    page.open(refresh="5", zoom="api-server;_start;main")
    server.asked.clear()
    check(page.wait("document.body.dataset.shown >= 2", 9), "refreshes by itself")
    check(page.data("zoom") == "api-server;_start;main", "and keeps the zoom", page.data("zoom"))


def big():
    fake_server.built("big", fake_server.big)
    check(page.open(service="big", seconds=120), "a million frames open")
    check(page.data("nodes") == "1000001", "all of them", page.data("nodes"))
    paint = float(page.data("paintMs"))
    check(paint <= SLACK * FIRST_PAINT_MS, f"first paint after data: {paint:.0f} ms", paint)
    times = []
    for level in (1, 2, 3, 4, 5, 6):
        before = page.data("zoom")
        page.point(level, 0.3, "left")
        if page.wait(f"document.body.dataset.zoom !== {before!r}", 5):
            times.append(float(page.data("zoomMs")))
    worst = max(times, default=1e9)
    check(len(times) >= 3 and worst <= SLACK * ZOOM_MS,
          f"zooms of {len(times)}, worst {worst:.0f} ms", times)
    page.shot("big")
    page.browser.key("Home")
    page.wait("document.body.dataset.zoom === ''")
    page.browser.key("/")
    page.browser.call("Input.insertText", text="method_12[0-9]")
    check(page.wait("/%/.test(document.getElementById('search-result').innerText)", 10),
          "a search over all of them", page.text("#search-result"))
    page.shot("big-search")
    page.open(service="big", colour="module", seconds=60)
    page.shot("big-module")
    check(page.quiet() == [], "no complaints", page.quiet())


def written_answers():
    test_any_data(page, "written answers")


server = fake_server.start(os.path.join(BUILD, "embed", "page.html.gz"))
page = Page(open_browser(), f"http://127.0.0.1:{server.port}/")
run(written_answers, look, choices, zoom, search, menu, keys, states, no_agent, detail,
    hostile, names_coming, refresh, big)

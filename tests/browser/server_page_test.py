# SPDX-License-Identifier: Apache-2.0
"""The web page as farflame-server serves it, over samples that our agent took on this host.

  server_page_test.py [URL]    URL: look at a running server instead, with samples of the last day
"""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from page import Page, check, open_browser, test_any_data  # noqa: E402
from harness import Agent, Server, need_bpf, run, wait_for  # noqa: E402

SECONDS = 4


def burn(seconds):
    """So that an idle host has something to show."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(10000))


def own_samples():
    server = Server()
    page = Page(open_browser(), server.url + "/")
    page.browser.go(page.base)
    check(page.wait_text("#message", "farflame-agent --server " + server.url),
          "without samples: says how to start an agent", page.text("#message"))
    check(page.quiet() == [], "without samples: no complaints", page.quiet())
    agent = Agent("--frequency", "199", "--report-interval", "1s", server=server)
    burn(SECONDS)
    agent.stop()
    wait_for(lambda: server.json("/api/v1/flamegraph")["accounting"]["samples"] > 0)
    test_any_data(page, "our own samples")
    check(page.run("document.getElementById('process').options.length") > 1,
          "processes to choose from")
    counted = server.json("/api/v1/flamegraph", from_="now-24h")["accounting"]
    shown = page.text("#stat-samples").replace(",", "")
    check(shown == f"{counted['samples']} samples", "the page shows the server's count of samples",
          (shown, counted))


def given_url():
    test_any_data(Page(open_browser(), url.split("#")[0]), "given server")


url = sys.argv.pop() if sys.argv[-1].startswith("http") else ""
if url:
    run(given_url)
else:
    need_bpf()
    run(own_samples)

# SPDX-License-Identifier: Apache-2.0
"""The page in Chromium beside speedscope and d3-flame-graph: tests/bench/page.mjs measures."""
import subprocess

import ratios


def page_rows(row):
    why = subprocess.run(["sh", "tests/web/packages.sh"], stdout=subprocess.PIPE, text=True)
    if why.returncode:
        raise RuntimeError(why.stdout.strip())
    with subprocess.Popen(["node", "tests/bench/page.mjs"], stdout=subprocess.PIPE, text=True) as measuring:
        for line in measuring.stdout:
            what, *more = line.rstrip("\n").split("\t")
            if what == "ratio":
                ratios.at_most(more[0], float(more[1]), float(more[2]), float(more[3]))
            else:
                row(what, *more)
    if measuring.returncode:
        raise RuntimeError("tests/bench/page.mjs ended with %d" % measuring.returncode)

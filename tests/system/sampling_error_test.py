# SPDX-License-Identifier: Apache-2.0
"""± on a real program: of its two functions' shares, known from all of its samples, nineteen in twenty short draws lie as
near as the API says; and it is not said that they are farther off than they are."""
import json
import os
import subprocess
import time

from harness import PROGRAMS, Agent, Server, build_programs, check, need_bpf, note, run, skip, wait_for

SECONDS, DRAWS = 24, 40


def share_error(part, whole, e, all_e):
    """As the API's description has it."""
    p = part / whole
    return max(0, e * e * (1 - 2 * p) + p * p * all_e * all_e) ** 0.5 / whole


def ask(server, **parameters):
    status, _, body = server.get("/api/v1/top", match='{process="mix"}', **parameters)
    answer = json.loads(body)
    if status != 200:
        raise RuntimeError(answer)
    work = {f["name"]: f for f in answer["functions"] if f["name"].endswith("_work")}
    return work, answer["accounting"]


def draws():
    build_programs("mix")
    server = Server()
    agent = Agent("--frequency", "997", "--report-interval", "2s", "--timestamps", server=server)
    begin = time.time()
    subprocess.run([os.path.join(PROGRAMS, "mix"), "0", "0", str(begin + SECONDS)], check=False, timeout=SECONDS + 60)
    until = time.time()
    agent.stop()
    server.wait_for_names(lambda rows: any("usual_work" in frames for frames, _ in rows), match='{process="mix"}')
    work, accounting = ask(server, from_="now-10m")
    if accounting["samples"] < 60 * DRAWS:
        return skip("%d samples: the machine is too busy" % accounting["samples"])
    of = work["usual_work"]["self"] / accounting["value"]
    note("usual_work has %.4f ± %.4f of %d samples" % (of, share_error(
        work["usual_work"]["self"], accounting["value"], work["usual_work"]["self_error"], accounting["error"]), accounting["samples"]))
    inside, errors, step = [], [], (until - begin) / DRAWS
    for i in range(DRAWS):
        from_ms = int(1000 * (begin + i * step))
        work, accounting = ask(server, exact="true", from_=from_ms, until=int(from_ms + 1000 * step))
        if accounting["samples"] < 50:
            continue
        f = work["usual_work"]
        error = share_error(f["self"], accounting["value"], f["self_error"], accounting["error"])
        errors.append((f["self"] / accounting["value"] - of) / error)
        inside.append(abs(errors[-1]) <= 1)
    # Of 40 with a chance of 0.95 fewer than 30 lie within in one of 10 million runs, of 0.5 as many in one of a thousand.
    check(len(inside) >= 30 and sum(inside) >= 0.75 * len(inside), "draws lie within ± of the share", (sum(inside), len(inside), errors))
    spread = (sum(error * error for error in errors) / len(errors)) ** 0.5
    note("%d of %d within; a draw is off by %.2f of ± (0.51 by chance)" % (sum(inside), len(inside), spread))
    # What alternates evenly comes out more even than chance has it: an upper bound, as is said; but not by orders.
    check(0.05 <= spread <= 1, "± is as large as draws are off", spread)


need_bpf()
run(draws)

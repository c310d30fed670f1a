# SPDX-License-Identifier: Apache-2.0
"""Waits for work, folded by rule: a sleeper's are one frame, who waits for a pipe keeps its stacks; totals stay, and what
was folded is what the stacks through those functions are worth."""
import os
import re
import subprocess
import time

from harness import WORK, Agent, Server, check, equal, need_bpf, run

IDLE = re.compile(r"^(ep_poll|do_epoll_wait|do_poll|do_sys_poll|do_select|core_sys_select|do_nanosleep|hrtimer_nanosleep|"
                  r"inet_csk_accept|unix_accept|do_accept|timerfd_read|timerfd_read_iter|do_sigtimedwait|sigsuspend|"
                  r"(__)?pthread_cond_(wait|timedwait|clockwait)|__pthread_clockjoin_ex|sem_(wait|timedwait|clockwait)|io_cqring_wait|"
                  r"do_mq_timedreceive|do_msgrcv|runtime\.(stopm|netpoll|sysmon))$")


def waits():
    server = Server()
    agent = Agent("--profile", "off-cpu", "--report-interval", "1s", "--off-cpu-budget", "100%", server=server)
    fifo = os.path.join(WORK, "fifo")
    os.mkfifo(fifo)
    reader = subprocess.Popen(["sh", "-c", "exec cat %s >/dev/null" % fifo])
    sleeper = subprocess.Popen(["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep 0.5; done"])
    with open(fifo, "w") as out:
        for _ in range(8):
            time.sleep(0.5)
            out.write("x")
            out.flush()
    reader.wait()
    sleeper.wait()
    server.wait_for_names(lambda rows: any("nanosleep" in frame for frames, _ in rows for frame in frames), type="off-cpu", value="value")
    check(agent.stop()[0] == 0, "the agent ends with status 0", agent.text()[-500:])
    status, of = server.get("/api/v1/types")[0], {"type": "off-cpu", "value": "value"}
    equal(status, 200, "there are types")
    shown, folded = server.folded(**of), server.folded(idle="fold", **of)
    through = {}
    for frames, value in shown:
        if any(IDLE.match(re.sub(r"_\[k\]$", "", frame)) for frame in frames[1:]):
            through[frames[0]] = through.get(frames[0], 0) + value
    grey = {}
    for frames, value in folded:
        if frames[1:] == ["[idle]"]:
            grey[frames[0]] = grey.get(frames[0], 0) + value
    equal(grey, through, "each process has one frame for its stacks through those functions")
    check(grey.get("sleep", 0) > 2e9, "who sleeps is idle", grey)
    check("cat" not in grey and any(frames[0] == "cat" and "pipe_read" in " ".join(frames) for frames, _ in folded),
          "who waits for a pipe is not", grey)
    equal(sum(v for _, v in folded), sum(v for _, v in shown), "the total stays")
    for path, more in (("flamegraph", {}), ("top", {}), ("flamegraph", {"invert": "true"}), ("flamegraph", {"max_nodes": "3"})):
        plain = server.json("/api/v1/" + path, type="off-cpu", **more)["accounting"]
        answer = server.json("/api/v1/" + path, type="off-cpu", idle="fold", **more)
        equal((answer["accounting"]["value"], answer["accounting"]["idle_value"]), (plain["value"], sum(grey.values())),
              "%s %s: counted openly" % (path, more))
        check("idle_value" not in plain, "%s: else not" % path)
        if path == "top":
            check(not any(IDLE.match(f["name"]) for f in answer["functions"]), "no function that was folded has a row")
            equal(answer["own"]["kinds"]["idle"], sum(grey.values()), "its kind has it")
    equal(server.json("/api/v1/flamegraph", type="off-cpu", idle="fold", root="sleep;[idle]")["nodes"]["total"][0], grey["sleep"],
          "it is zoomed into like any frame")
    equal(server.get("/api/v1/flamegraph", idle="x")[0], 422, "another word is refused")
    server.stop()


need_bpf()
run(waits)

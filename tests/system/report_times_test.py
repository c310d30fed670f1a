# SPDX-License-Identifier: Apache-2.0
"""Samples are of the report in whose time they were taken, however late the agent gets to them: no report has more
of them than the CPUs had time for. The agent is stopped again and again, as a host that is too busy does."""
import os
import signal
import sys
import time

from harness import Agent, Server, check, end, need_bpf, note, run, start

RATE_HZ = 1000
STOPS, STOPPED_S = 4, 4
SAMPLES_OFF = 0.1  # of the CPUs' time: ticks that come late, and reports' ends in milliseconds


def reports(server, from_ms):
    """[(second, CPUs' nanoseconds, milliseconds)]"""
    answer = server.json("/api/v1/timeline", from_=from_ms, until="now", step="1s")
    lengths = {at: ms for at, ms, _ in answer["reported"]}
    return answer["accounting"]["cpus"], [(at, value, lengths.get(at, 0)) for at, value, _ in answer["series"][0]["points"] if value]


def stopped_again_and_again(server):
    agent = Agent("--frequency", str(RATE_HZ), "--report-interval", "1s", server=server)
    from_ms = int(time.time() * 1000)
    for _ in range(STOPS):
        time.sleep(1.3)
        os.kill(agent.process.pid, signal.SIGSTOP)
        time.sleep(STOPPED_S)
        os.kill(agent.process.pid, signal.SIGCONT)
    time.sleep(2.5)
    agent.stop()
    return reports(server, from_ms)


def no_more_than_there_was_time_for():
    need_bpf()
    server = Server()
    busy = [start([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count())]
    cpus, told = stopped_again_and_again(server)
    for process in busy:
        end(process)
    too_many = [(at, value / 1e6 / ms / cpus) for at, value, ms in told if ms and value > cpus * 1e6 * (ms * (1 + SAMPLES_OFF) + 20)]
    note("%d reports, the longest of %d ms, the fullest %.2f" % (
        len(told), max(ms for _, _, ms in told), max(value / 1e6 / ms / cpus for _, value, ms in told if ms)))
    check(len(told) > STOPS, "reports are there", told)
    check(not too_many, "no report has more samples than its CPUs had time for", too_many)
    server.stop()


run(no_more_than_there_was_time_for)

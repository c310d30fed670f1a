# SPDX-License-Identifier: Apache-2.0
"""Three programs use 60, 30 and 10 % of a CPU, as their own getrusage says: the samples agree within
three standard deviations, and the same check finds 55/35/10 wrong."""
import math
import subprocess
import time

from harness import WORK, Agent, Server, build_programs, check, need_bpf, note, program_copy, run

SECONDS = 6


def sigmas(samples, used):
    """By how many standard deviations of a binomial each program's share is off, at worst."""
    all_samples, all_used = sum(samples.values()), sum(used.values())
    worst = 0
    for name in used:
        share = used[name] / all_used
        deviation = math.sqrt(share * (1 - share) / all_samples)
        worst = max(worst, abs(samples.get(name, 0) / all_samples - share) / deviation)
    return worst


def shares():
    build_programs("burn")
    server = Server()
    names = {"burn_60": 60, "burn_30": 30, "burn_10": 10}
    paths = {name: program_copy("burn", name) for name in names}
    agent = Agent("--frequency", "999", "--report-interval", "2s", server=server)
    burning = {name: subprocess.Popen([paths[name], str(percent), str(SECONDS)], stdout=subprocess.PIPE, text=True)
               for name, percent in names.items()}
    printed = {name: list(map(float, process.communicate(timeout=120)[0].split())) for name, process in burning.items()}
    used = {name: seconds[0] for name, seconds in printed.items()}
    on_cpu = sum(seconds[1] for seconds in printed.values())
    time.sleep(0.2)
    check(agent.stop()[0] == 0, "the agent ends with status 0", agent.text()[-500:])
    samples = dict.fromkeys(names, 0)
    for frames, value in server.folded(match='{process=~"burn_.*"}'):
        samples[frames[0]] += value
    note("samples %s; CPU seconds and those by the wall's clock %s" % (samples, printed))
    check(sum(samples.values()) >= 3000, "at least 3000 samples", samples)
    # What a hypervisor takes is no CPU time to the kernel, but the sampling clock runs on, in slices shorter than
    # its period without missing a tick.
    least, most = 0.95 * sum(used.values()) * 999, 1.05 * on_cpu * 999
    check(least <= sum(samples.values()) <= most, "as many samples as time on a CPU times rate, within 5 %",
          "%d, expected %d to %d" % (sum(samples.values()), least, most))
    off = sigmas(samples, used)
    check(off <= 3, "shares agree with getrusage within 3 sigma", "%.2f sigma: %s %s" % (off, samples, used))
    wrong = {"burn_60": 55, "burn_30": 35, "burn_10": 10}
    off = sigmas(samples, wrong)
    check(off > 3, "the same check rejects 55/35/10", "%.2f sigma" % off)


need_bpf()
run(shares)

# SPDX-License-Identifier: Apache-2.0
"""Three programs use 60, 30 and 10 % of a CPU, as their own getrusage says: the samples agree within
three standard deviations, and the same check finds 55/35/10 wrong."""
import math
import subprocess
import time

from harness import Agent, Server, build_programs, check, need_bpf, note, program_copy, run, skip


def sigmas(samples, used):
    """By how many standard deviations of a binomial each program's share is off, at worst."""
    all_samples, all_used = sum(samples.values()), sum(used.values())
    worst = 0
    for name in used:
        share = used[name] / all_used
        deviation = math.sqrt(share * (1 - share) / all_samples)
        worst = max(worst, abs(samples.get(name, 0) / all_samples - share) / deviation)
    return worst


def measure(seconds):
    """({program: samples}, {program: CPU seconds}, seconds on a CPU by the wall's clock)"""
    names = {"burn_60": 60, "burn_30": 30, "burn_10": 10}
    paths = {name: program_copy("burn", name) for name in names}
    server = Server(data="data%d" % seconds)
    agent = Agent("--frequency", "999", "--report-interval", "2s", server=server)
    burning = {name: subprocess.Popen([paths[name], str(percent), str(seconds)], stdout=subprocess.PIPE, text=True)
               for name, percent in names.items()}
    printed = {name: list(map(float, process.communicate(timeout=seconds + 120)[0].split()))
               for name, process in burning.items()}
    time.sleep(0.2)
    check(agent.stop()[0] == 0, "the agent ends with status 0", agent.text()[-500:])
    samples = dict.fromkeys(names, 0)
    for frames, value in server.folded(match='{process=~"burn_.*"}'):
        samples[frames[0]] += value
    server.stop()
    note("samples %s; CPU seconds and those by the wall's clock %s" % (samples, printed))
    return samples, {name: seconds[0] for name, seconds in printed.items()}, sum(s[1] for s in printed.values())


def shares():
    build_programs("burn")
    for seconds in (6, 40):  # a busy machine needs longer for as many samples
        samples, used, on_cpu = measure(seconds)
        if sum(samples.values()) >= 3000:
            break
    else:
        return skip("fewer than 3000 samples in %d s: the machine is too busy to tell shares apart" % seconds)
    # What a hypervisor takes is no CPU time to the kernel, but the sampling clock runs on, in slices shorter than
    # its period without missing a tick.
    least, most = 0.95 * sum(used.values()) * 999, 1.05 * on_cpu * 999
    check(least <= sum(samples.values()) <= most, "as many samples as time on a CPU times rate, within 5 %",
          "%d, expected %d to %d" % (sum(samples.values()), least, most))
    off = sigmas(samples, used)
    check(off <= 3, "shares agree with getrusage within 3 sigma", "%.2f sigma: %s %s" % (off, samples, used))
    wrong = {"burn_60": 50, "burn_30": 40, "burn_10": 10}
    off = sigmas(samples, wrong)
    check(off > 3, "the same check rejects 50/40/10", "%.2f sigma" % off)


need_bpf()
run(shares)

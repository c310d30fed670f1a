# SPDX-License-Identifier: Apache-2.0
"""A file system that a profiled program ran from can be unmounted soon after the program has ended, without -l, while
the agent goes on: no descriptor is kept for long, and what is needed once more is opened again."""
import atexit
import os
import subprocess
import time

from harness import PROGRAMS, WORK, Agent, Server, build_programs, check, end, free_port, need_bpf, note, \
    run, skip_all, start, wait_for

SECONDS = 90  # half of them are the agent's: 30 s on the upload list where the server did not take the file


def mounted(name):
    place = os.path.join(WORK, name)
    os.makedirs(place)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "farflame-" + name, place]).returncode:
        skip_all("mounting a tmpfs is not permitted here")
    atexit.register(subprocess.run, ["umount", "-l", place], capture_output=True)
    return place


def unmounted_after(place):
    """Seconds until umount(8) takes it; None: not within SECONDS."""
    begin = time.monotonic()
    done = wait_for(lambda: not subprocess.run(["umount", place], capture_output=True).returncode, SECONDS)
    if not done:
        subprocess.run(["umount", "-l", place])
        return None
    return time.monotonic() - begin


def holders(name):
    """Whose descriptors lead to such a path."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            for fd in os.listdir("/proc/%s/fd" % pid):
                link = os.readlink("/proc/%s/fd/%s" % (pid, fd))
                if name in link:
                    found.append("%s %s %s" % (pid, open("/proc/%s/comm" % pid).read().strip(), link))
        except OSError:
            pass
    return found


def run_from(place, seconds):
    program = os.path.join(place, "chain_" + os.path.basename(place))
    subprocess.run(["cp", os.path.join(PROGRAMS, "chain_pie"), program], check=True)
    process = start([program, str(seconds)])
    return program, process


def uploaded():
    """With a server that takes the file; beside others that keep agent and parser at work."""
    place = mounted("uploaded")
    server = Server()
    agent = Agent("--frequency", "199", server=server)
    busy = start(["sh", "-c", "while :; do ls -R /usr/lib >/dev/null 2>&1; done"])
    program, process = run_from(place, 60)
    name = os.path.basename(program)[:15]
    rows = server.wait_for_names(lambda rows: any("level_4" in row[0] for row in rows if row[0][0] == name), 60,
                                 match='{process="%s"}' % name)
    check(any("level_4" in row[0] for row in rows), "names of the program have come", rows[:5])
    end(process)
    took = unmounted_after(place)
    check(took is not None, "its file system is unmounted within %d s, without -l" % SECONDS, "\n".join(holders(place)))
    note("unmounted after %.1f s" % (took or 0))
    check(agent.process.poll() is None, "the agent goes on")
    rows = server.folded(match='{process="%s"}' % name)
    check(any("level_4" in row[0] for row in rows), "its names are there afterwards", rows[:5])
    end(busy)
    agent.stop()


def not_uploaded():
    """With a server that is away: the file waits on the upload list."""
    place = mounted("away")
    agent = Agent("--frequency", "199", server="http://127.0.0.1:%d" % free_port(), log="away.log")
    _, process = run_from(place, 60)
    check(wait_for(lambda: any("agent" in holder for holder in holders(place)), 20), "the agent has the file open")
    end(process)
    took = unmounted_after(place)
    check(took is not None, "unmounted within %d s while the server is away" % SECONDS, "\n".join(holders(place)))
    note("unmounted after %.1f s" % (took or 0))
    agent.stop()


def opened_again():
    """A program that slept longer than its file was kept open, and that only its own mount namespace has, runs code
    that was not looked at before: its stacks are whole."""
    place = os.path.join(WORK, "hidden")
    os.makedirs(place)
    server = Server(data="again")
    agent = Agent("--frequency", "199", server=server, log="again.log")
    process = start(["unshare", "-m", "sh", "-c", "mount -t tmpfs farflame %s && cp %s/late_code %s && exec %s/late_code 3 45 6"
                     % (place, PROGRAMS, place, place)])
    check(wait_for(lambda: holders("/late_code"), 10), "the agent has the file open")
    closed = wait_for(lambda: not holders("/late_code"), 44)
    check(closed, "no descriptor is kept while it sleeps", "\n".join(holders("/late_code")))
    process.wait(90)

    def late(rows):
        return sum(value for stack, value in rows if "late_leaf" in stack)

    def whole(rows):
        return sum(value for stack, value in rows if stack[-3:] == ["main", "late_middle", "late_leaf"])
    rows = server.wait_for_names(lambda rows: late(rows) > 200, 60, match='{process="late_code"}')
    check(whole(rows) >= 0.95 * late(rows) > 0, "code that runs after the sleep has whole stacks with names",
          "%d of %d\n%s" % (whole(rows), late(rows), rows[:10]))
    agent.stop()


if __name__ == "__main__":
    need_bpf()
    build_programs("chain_pie", "late_code")
    run(uploaded, not_uploaded, opened_again)

# SPDX-License-Identifier: Apache-2.0
"""Programs of nobody that name files which nobody may not read, for root's agent to upload: by a link, a folder, a
device, another mount namespace, or because they may be run but not read. And those that it has to upload."""
import atexit
import ctypes
import os
import shutil
import stat
import struct
import subprocess
import tempfile

from harness import Agent, Server, check, equal, need_bpf, run, skip, start, wait_for

NOBODY = 65534
SOURCE = """
#include <time.h>
int main(void)
{
	for (volatile unsigned i = 0;; i++)
		if (i % 4000000 == 0)
			nanosleep(&(struct timespec){0, 10000000}, 0);
}
"""
AGENT = ["--frequency", "199", "--report-interval", "1s", "--upload-rate", "1G", "--log-level", "debug"]
IN_OPEN = 0x20
state = {"ids": {}, "debug": {}, "processes": []}


def sh(*arguments, **more):
    return subprocess.run(arguments, check=True, capture_output=True, **more).stdout


def place(*names):
    return os.path.join(state["folder"], *names)


def folder(name, owner=NOBODY, mode=0o755):
    os.makedirs(place(name))
    os.chmod(place(name), mode)
    os.chown(place(name), owner, owner)
    return place(name)


def give(path, owner, mode):
    os.chown(path, owner, owner)
    os.chmod(path, mode)
    return path


def program(name, where, owner=NOBODY, mode=0o755):
    """A stripped program there that links to NAME.debug; returns its debug file, which lies elsewhere, root's alone."""
    state["ids"][name] = os.urandom(20).hex()
    whole, debug, path = place("build", "whole"), place("build", name + ".debug"), os.path.join(where, name)
    sh("cc", "-g", "-O1", "-Wl,--build-id=0x" + state["ids"][name], place("build", "spin.c"), "-o", whole)
    sh("objcopy", "--only-keep-debug", whole, debug)
    sh("strip", whole)
    sh("objcopy", "--add-gnu-debuglink=" + debug, whole, path)
    state["debug"][name] = open(debug, "rb").read()
    give(path, owner, mode)
    return give(debug, 0, 0o600)


def spin(*arguments):
    state["processes"].append(start(list(arguments), "programs.log", user=NOBODY, group=NOBODY, extra_groups=[],
                                    cwd="/"))


class Opened:
    """Whether one of the files is opened from now on; O_PATH does not count, it opens nothing."""
    def __init__(self, *paths):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self.names = {self.libc.inotify_add_watch(self.fd, os.fsencode(path), IN_OPEN): path for path in paths}

    def files(self):
        try:
            return [self.names[number] for number, *_ in struct.iter_unpack("iIII", os.read(self.fd, 65536))]
        except BlockingIOError:
            return []


def plant():
    """name → what it tries. Of each the agent has a stripped program, and the server wants what it lacks."""
    closed = folder("closed", 0, 0o700)
    secrets = []

    def secret(name, where):
        secrets.append(shutil.move(program(name, where), closed))
        return secrets[-1]

    os.symlink(secret("a-link", folder("link")), place("link", "a-link.debug"))
    secret("a-folder", folder("way"))
    os.symlink(closed, place("way", ".debug"))
    device = os.path.join(closed, "device")
    os.mknod(device, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    program("a-device", folder("device"))
    os.symlink(device, place("device", "a-device.debug"))
    program("a-pipe", folder("pipe"))
    os.mkfifo(place("pipe", "a-pipe.debug"))
    # what only another mount namespace has there
    program("a-space", folder("space"))
    shutil.copyfile(place("build", "a-space.debug"), os.path.join(closed, "a-space.debug"))
    secrets.append(os.path.join(closed, "a-space.debug"))
    state["watch"] = Opened(device, place("pipe", "a-pipe.debug"), *secrets)
    program("runs-only", folder("bin", 0), 0, 0o4711)
    # and what has to be found
    shutil.move(give(program("its-own", folder("own")), NOBODY, 0o600), place("own", "its-own.debug"))
    hosts = give(program("the-hosts", folder("host")), 0, 0o644)
    plant_on_host(hosts, state["ids"]["the-hosts"])


def plant_on_host(debug, build_id):
    """As distributions have it: the build-id is a link to where the file lies."""
    tree, made = "/usr/lib/debug/.build-id/" + build_id[:2], []
    for path in ("/usr/lib/debug", "/usr/lib/debug/.build-id", tree):
        if not os.path.isdir(path):
            os.mkdir(path, 0o755)
            made.append(path)
    real, link = "/usr/lib/debug/farflame-test-%s.debug" % build_id, "%s/%s.debug" % (tree, build_id[2:])

    def clean():
        for path in (real, link):
            if os.path.lexists(path):
                os.unlink(path)
        for path in reversed(made):
            os.rmdir(path)

    atexit.register(clean)
    give(shutil.copyfile(debug, real), 0, 0o644)
    os.symlink("../../" + os.path.basename(real), link)


def run_in_space():
    """A user's own namespaces, in which root's closed folder is one of its own. False: not permitted here."""
    inside = 'mount --bind "$0" "$1" && exec "$1/a-space"'
    spin("unshare", "-Urm", "sh", "-c", inside, place("space"), place("closed"))
    process = state["processes"][-1]
    return wait_for(lambda: process.poll() is not None or
                    os.path.basename(os.readlink("/proc/%d/exe" % process.pid)) == "a-space", 20) and process.poll() is None


def settled(agent, server, name):
    """The server has some file of it, or the agent said why not."""
    return any(server.get("/buildid/%s/%s" % (state["ids"][name], kind))[0] == 200
               for kind in ("debuginfo", "executable")) or 'module not uploaded name="%s"' % name in agent.text()


def debuginfo(server, name):
    return server.get("/buildid/%s/debuginfo" % state["ids"][name])


def test_files():
    state["folder"] = tempfile.mkdtemp(prefix="farflame-files-", dir="/tmp")
    atexit.register(shutil.rmtree, state["folder"], True)
    os.chmod(state["folder"], 0o755)
    os.mkdir(place("build"), 0o700)
    open(place("build", "spin.c"), "w").write(SOURCE)
    plant()
    server, names = Server(), ["a-link", "a-folder", "a-device", "a-pipe", "runs-only", "its-own", "the-hosts"]
    for name, where in zip(names, ("link", "way", "device", "pipe", "bin", "own", "host")):
        spin(place(where, name))
    if run_in_space():
        names.append("a-space")
    else:
        skip("users may have no namespaces of their own here")
    agent = Agent(*AGENT, *(word for process in state["processes"] if process.poll() is None
                            for word in ("--pid", str(process.pid))), server=server)
    wait_for(lambda: all(settled(agent, server, name) for name in names), 90, 0.5)
    equal([name for name in names if not settled(agent, server, name)], [], "each program was asked for and answered")
    for name in names:
        if name in ("its-own", "the-hosts"):
            continue
        status, _, body = debuginfo(server, name)
        check(status == 404 and state["debug"][name] not in body, "%s: its debug file is not to be had" % name,
              "status %d, %d bytes" % (status, len(body)))
    status, _, body = server.get("/buildid/%s/executable" % state["ids"]["runs-only"])
    check(status == 404, "a program that may be run but not read is not to be had", "status %d" % status)
    equal(state["watch"].files(), [], "no device, no pipe and none of root's files was opened")
    for name in ("its-own", "the-hosts"):
        status, _, body = debuginfo(server, name)
        check(status == 200 and body == state["debug"][name], "%s: its debug file was uploaded" % name,
              "status %d, %d bytes" % (status, len(body)))
    agent.stop()
    refused = [line for line in agent.text().splitlines() if "upload_files_refused=" in line]
    check(refused and int(refused[-1].split("upload_files_refused=")[1].split()[0]) >= 5,
          "what was refused is counted", refused)


need_bpf()
run(test_files)

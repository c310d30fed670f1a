# SPDX-License-Identifier: Apache-2.0
"""A program as its shipped systemd unit has it, whatever is process 1 here: a user manager of root's own, which applies the
unit's rights, limits, filters and mounts as any systemd does. It has mounts and cgroups to itself."""
import glob
import os
import shutil
import signal
import subprocess

from harness import BUILD, WORK, end, start, wait_for

MANAGER = "/lib/systemd/systemd"
GROUPS = "/sys/fs/cgroup"
BOOT = """
set -e
mount --make-rprivate /
# A namespace of cgroups changes no mount that is there: without these systemd would move all of the host's processes.
for group in $OWN_GROUPS; do mount --bind "$group" "${group%/*}"; done
for path in /etc /usr/sbin /var/lib; do
	name=$(echo $path | tr / _)
	mkdir -p "$ROOM/layers/$name" "$ROOM/layers/$name.work"
	mount -t overlay -o "lowerdir=$path,upperdir=$ROOM/layers/$name,workdir=$ROOM/layers/$name.work" overlay $path
done
mkdir "$ROOM/layers/run"
mount --rbind "$ROOM/layers/run" /run
mkdir -p /run/systemd/system /run/systemd/user /etc/farflame
cp "$UNIT" /run/systemd/user/
cp "$CONFIG" "/etc/farflame/$KEY.conf"
for file in $PROGRAMS; do ln -f "$file" "$ROOM/layers/_usr_sbin/" 2>/dev/null || cp "$file" /usr/sbin/; done
umask 0 # as process 1 has it: the units' users tell it that they are ready
exec env -u DBUS_SESSION_BUS_ADDRESS -u NOTIFY_SOCKET XDG_RUNTIME_DIR=/run XDG_CONFIG_HOME=/var/lib \
	"$MANAGER" --user --unit="${UNIT##*/}" --log-target=console --log-level=info
"""


def missing():
    """Why it cannot be done here, or None."""
    if not os.path.exists(MANAGER):
        return "systemd is not installed"
    tried = subprocess.run(["unshare", "-m", "-C", "sh", "-c", "mount -t tmpfs tmpfs /mnt && cd /mnt && mkdir l u w m && "
                            "mount -t overlay -o lowerdir=l,upperdir=u,workdir=w overlay m"], capture_output=True, text=True)
    return "no namespaces of mounts and cgroups: " + tried.stderr.strip() if tried.returncode else None


class Unit:
    """The unit's program, running. config: the text of /etc/farflame/agent.conf, or server.conf."""
    def __init__(self, unit, config, programs, lines=()):
        self.name = os.path.splitext(os.path.basename(unit))[0]
        self.room = os.path.join(WORK, "unit")
        self.log = os.path.join(WORK, self.name + ".log")
        shutil.rmtree(self.room, ignore_errors=True)
        os.makedirs(os.path.join(self.room, "layers"))
        # The log, as a file; a unit's type of start is not what this is about.
        text = open(unit, encoding="utf-8").read()
        text = text.replace("[Service]\n", "[Service]\nStandardError=append:%s\n%s" % (
            self.log, "".join(line + "\n" for line in lines)))
        self.unit = os.path.join(self.room, os.path.basename(unit))
        for path, content in ((self.unit, text), (os.path.join(self.room, "config"), config)):
            with open(path, "w", encoding="utf-8") as file:
                file.write(content)
        self.groups = []
        for where in {os.path.realpath(path) for path in glob.glob(GROUPS + "/*/cgroup.procs") + [GROUPS + "/cgroup.procs"]
                      if os.path.exists(path)}:
            self.groups.append(os.path.join(os.path.dirname(where), "farflame-unit-%d" % os.getpid()))
        self.start()

    def enter(self):
        for group in self.groups:
            try:
                os.makedirs(group, exist_ok=True)
                for name in ("cpuset.mems", "cpuset.cpus"):
                    if os.path.exists(os.path.join(group, name)):
                        with open(os.path.join(os.path.dirname(group), name)) as have, \
                                open(os.path.join(group, name), "w") as give:
                            give.write(have.read())
                with open(os.path.join(group, "cgroup.procs"), "w") as file:
                    file.write(str(os.getpid()))
            except OSError:
                pass  # a kind of limit that is not to be had here

    def start(self):
        environment = dict(os.environ, ROOM=self.room, UNIT=self.unit, CONFIG=os.path.join(self.room, "config"),
                           OWN_GROUPS=" ".join(self.groups), KEY=self.name.split("-")[1],
                           PROGRAMS=os.path.join(BUILD, self.name), MANAGER=MANAGER)
        self.manager = start(["unshare", "-m", "-C", "sh", "-c", BOOT], "manager.log", env=environment,
                             preexec_fn=self.enter)

    def pid(self):
        """Of the program; 0: it does not run."""
        for child in self.children(self.manager.pid):
            try:
                if os.path.basename(os.readlink("/proc/%d/exe" % child)).split(" ")[0] == self.name:
                    return child
            except OSError:
                pass
        return 0

    @staticmethod
    def children(pid):
        try:
            return [int(word) for word in open("/proc/%d/task/%d/children" % (pid, pid)).read().split()]
        except OSError:
            return []

    def state(self):
        """As systemctl names it: active, activating, …"""
        return subprocess.run(["nsenter", "-m", "-t", str(self.manager.pid), "env", "XDG_RUNTIME_DIR=/run", "systemctl", "--user",
                               "is-active", self.name], capture_output=True, text=True).stdout.strip()

    def text(self):
        try:
            return open(self.log, encoding="utf-8", errors="replace").read()
        except OSError:
            return ""

    def manager_text(self):
        return open(os.path.join(WORK, "manager.log"), errors="replace").read()

    def stop(self):
        pid = self.pid()
        if pid:
            os.kill(pid, signal.SIGTERM)
            wait_for(lambda: not self.pid(), 10)
        for left in self.children(self.manager.pid):  # of a unit that starts anew
            os.kill(left, signal.SIGKILL)
        end(self.manager, 5, signal.SIGRTMIN + 24)  # systemd(1): at once
        for group in self.groups:
            wait_for(lambda where=group: self.remove(where), 5)

    @staticmethod
    def remove(group):
        for folder, _, _ in os.walk(group, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                return False
        return True

# SPDX-License-Identifier: Apache-2.0
"""python3 tests/kernels/power_loss.py BUILD: a server in a QEMU guest, whose power goes again and again.

Unlike SIGKILL of the server this loses the guest's page cache, and of the virtual disk's what was not flushed: the
image is qcow2, whose table of newly used clusters QEMU writes when the guest flushes. The guest's clock is wrong after
each start, by another amount up to a minute and a half. A fleet on this side sends
without a pause, keeps the tally of what was answered 200 and sends the rest again; afterwards every answer of the
server has to equal the tally. RESETS=20 by default. Prints TAP.
"""
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

BUILD = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build")
os.environ["FARFLAME_BUILD"] = BUILD
del sys.argv[1:]
os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
sys.path[:0] = ["tests/system", "tests/tools/fleet"]
import fleet_check  # noqa: E402
import harness  # noqa: E402
from harness import WORK, check, end, equal, fleet_tool, free_port, note, run, skip_all, start, wait_for  # noqa: E402

RESETS = int(os.environ.get("RESETS", "20"))
KERNEL = os.environ.get("POWER_KERNEL", "6.1")
WANTED = ("virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk", "failover",
          "net_failover", "virtio_net", "crc16", "crc32c_generic", "libcrc32c", "mbcache", "jbd2", "ext4")


def kernel():
    """(vmlinuz, folder of modules); None: it cannot be had."""
    where = os.path.join(BUILD, "power")
    done = subprocess.run(["sh", "tests/kernels/fetch.sh", where, KERNEL], capture_output=True, text=True,
                          env=dict(os.environ, KEEP_MODULES="1"))
    words = done.stdout.split()
    if len(words) < 2 or words[1] == "missing":
        return None, done.stdout + done.stderr
    return words[1], os.path.join(where, KERNEL, "modules")


def make_initramfs(modules):
    root = os.path.join(WORK, "root")
    for folder in ("bin", "dev", "proc", "sys", "tmp", "disk", "modules"):
        os.makedirs(os.path.join(root, folder))
    shutil.copy(shutil.which("busybox"), root + "/bin/busybox")
    shutil.copy("tests/kernels/power_init.sh", root + "/init")
    os.chmod(root + "/init", 0o755)
    shutil.copy("tests/kernels/guest_disk.sh", root)
    shutil.copy(BUILD + "/farflame-server", root + "/farflame-server")
    order = []
    for name in WANTED:
        for path in glob.glob(modules + "/**/" + name + ".ko*", recursive=True)[:1]:
            target = root + "/modules/" + name + ".ko"
            if path.endswith(".xz"):
                with open(target, "wb") as out:
                    subprocess.run(["xz", "-dc", path], stdout=out, check=True)
            else:
                shutil.copy(path, target)
            order.append(name + ".ko")
    with open(root + "/modules/order", "w") as file:
        file.write("\n".join(order) + "\n")
    libraries = subprocess.run(["ldd", BUILD + "/farflame-server"], capture_output=True, text=True, check=True).stdout
    for word in libraries.split():
        if word.startswith("/"):
            os.makedirs(root + os.path.dirname(word), exist_ok=True)
            shutil.copy(word, root + word)
    subprocess.run("find . | cpio -o -H newc --quiet | gzip -1 >../initramfs.gz", shell=True, cwd=root, check=True)
    shutil.rmtree(root)


def make_disk():
    raw, disk = WORK + "/disk.raw", WORK + "/disk.qcow2"
    subprocess.run(["truncate", "-s", "4G", raw], check=True)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,nodiscard", raw], check=True)
    subprocess.run(["qemu-img", "convert", "-O", "qcow2", raw, disk], check=True)
    os.unlink(raw)


class Guest:
    """A server behind a port here; the disk stays."""

    def __init__(self, vmlinuz):
        self.vmlinuz, self.port, self.boots, self.seconds = vmlinuz, free_port(), 0, []
        self.url = "http://127.0.0.1:%d" % self.port

    def start(self):
        self.boots += 1
        begin = time.monotonic()
        self.console = "%s/console-%d" % (WORK, self.boots)
        clock = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + random.uniform(-90, 90)))
        self.process = start(
            ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "1024",
             "-no-reboot", "-rtc", "base=" + clock, "-display", "none", "-serial", "file:" + self.console,
             "-drive", "file=%s/disk.qcow2,if=virtio,format=qcow2,cache=writeback" % WORK,
             "-nic", "user,model=virtio-net-pci,restrict=on,hostfwd=tcp:127.0.0.1:%d-10.0.2.15:7878" % self.port,
             "-kernel", self.vmlinuz, "-initrd", WORK + "/initramfs.gz",
             "-append", "console=ttyS0 panic=-1 quiet loglevel=3"], "qemu.log")
        up = wait_for(lambda: self.is_ready() or self.process.poll() is not None, 400, 0.1) and self.is_ready()
        self.seconds.append(time.monotonic() - begin)
        return check(up, "start %d: the server is ready (%.1f s)" % (self.boots, self.seconds[-1]), self.tail())

    def is_ready(self):
        try:
            return fleet_check.urllib.request.urlopen(self.url + "/readyz", timeout=2).status == 200
        except (OSError, fleet_check.urllib.error.URLError, harness.http.client.HTTPException):
            return False

    def tail(self):
        try:
            return open(self.console, errors="replace").read()[-2000:]
        except OSError:
            return ""

    def cut_power(self):
        end(self.process, how=signal.SIGKILL)


def power_loss():
    vmlinuz, modules = kernel()
    if not vmlinuz:
        return harness.skip("no kernel %s: %s" % (KERNEL, modules.strip()))
    seed = random.randrange(1 << 31)
    note("seed %d" % seed)
    random.seed(seed)
    make_initramfs(modules)
    make_disk()
    guest = Guest(vmlinuz)
    if not guest.start():
        return None
    tally = WORK + "/tally"
    fleet = start([fleet_tool(), "--server", guest.url, "--tally", tally, "--agents", "24", "--interval", "300ms",
                   "--duration", "9h", "--settle", "300s", "--timeout", "5s", "--samples", "40", "--stacks", "600",
                   "--late", "10", "--late-by", "26h", "--duplicates", "10", "--restarts", "2", "--seed", str(seed)],
                  "fleet.log", stdout=subprocess.PIPE)
    for _ in range(RESETS):
        time.sleep(random.uniform(1, 12) if random.random() < 0.7 else random.uniform(28, 36))  # a fold is each 30 s
        guest.cut_power()
        if not guest.start():
            return None
    fleet.send_signal(signal.SIGTERM)
    text = fleet.stdout.read()
    status, _ = end(fleet, 400)
    said = json.loads(text or "{}")
    note(json.dumps(said))
    equal(status, 0, "every report of the fleet was answered in the end")
    check(said.get("acknowledged", 0) > 50 * RESETS, "there was a load", said)
    compare(guest, tally, seed, "after %d losses of power" % RESETS)
    guest.cut_power()
    if guest.start():
        compare(guest, tally, seed + 1, "after one more")
    logs = "".join(open(path, errors="replace").read() for path in glob.glob(WORK + "/console-*"))
    damaged = [line for line in logs.splitlines() if "damaged" in line or "EXT4-fs error" in line]
    equal(damaged, [], "nothing was found damaged")
    note("starts took %.1f to %.1f s" % (min(guest.seconds), max(guest.seconds)))
    guest.cut_power()
    os.unlink(WORK + "/disk.qcow2")


def compare(guest, tally, seed, when):
    differences = []
    done = fleet_check.check(guest.url, [tally], 20, seed, say=differences.append)
    check(done.questions > 20 and done.rows > 500 and not differences,
          "%s: all of %d answers equal the tally" % (when, done.questions), "\n".join(differences)[:4000])


if __name__ == "__main__":
    if os.uname().machine != "x86_64" or not all(
            shutil.which(p) for p in ("qemu-system-x86_64", "qemu-img", "busybox", "mkfs.ext4", "cpio")):
        skip_all("needs x86_64 with qemu-system-x86, qemu-utils, busybox-static, e2fsprogs and cpio")
    run(power_loss)

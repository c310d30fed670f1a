# SPDX-License-Identifier: Apache-2.0
"""Uploads fill neither the disk nor more of it than --upload-disk; those in use stay; they are listed and deleted.
On a small disk of its own, which root mounts."""
import json
import os
import subprocess

from harness import Server, WORK, check, equal, run, skip_all, wait_for

MB = 1 << 20
RESERVE = 256 * MB
DISK = RESERVE + 140 * MB  # with what servers hold in reserve for a full disk
state = {}


def build_id(number):
    return "%040x" % (0xabc000 + number)


def program(number):
    """An ELF file of that build-id."""
    source, path = WORK + "/program.c", WORK + "/program-%d" % number
    with open(source, "w", encoding="utf-8") as file:
        file.write("int f%d(int a) { return a + 1; }\nint main(void) { return 0; }\n" % number)
    subprocess.run(["cc", "-g", "-o", path, source, "-Wl,--build-id=0x" + build_id(number)], check=True)
    with open(path, "rb") as file:
        return file.read()


def upload(server, number, padding=b""):
    status, _, body = server.request("PUT", "/api/v1/modules/" + build_id(number), program(number) + padding,
                                     {"Content-Type": "application/octet-stream"}, timeout=60)
    return status, body.decode(errors="replace")


def metric(server, name):
    for text in server.get("/metrics")[2].decode().splitlines():
        if text.startswith("farflame_server_" + name + " "):
            return float(text.split()[1])
    return None


def free_bytes():
    disk = os.statvfs(state["disk"])
    return disk.f_bavail * disk.f_frsize


def has_file(server, number):
    return server.get("/buildid/%s/debuginfo" % build_id(number))[0] == 200


def modules(server):
    return json.loads(server.get("/api/v1/modules?from=now-1h&until=now")[2])


def of_disk(name, *arguments):
    """A server whose data is on the small disk."""
    return Server(*arguments, data=os.path.join(state["disk"], name), log=name + ".log")


def test_limit():
    server = of_disk("limit", "--upload-disk", "20M")
    equal(upload(server, 0)[0], 201, "a program is uploaded")
    for number in range(1, 13):
        status, text = upload(server, number, os.urandom(4 * MB))
        if status != 201:
            check(False, "upload %d is taken" % number, text)
        check(has_file(server, 0), "after %d the one in use is there" % number) if number % 4 == 0 else has_file(server, 0)
    used = metric(server, "upload_disk_bytes")
    check(used <= 20 * MB, "48 MB were sent, the limit holds", used)
    check(metric(server, "uploads_evicted_total") > 5, "those used longest ago made room, counted")
    equal([has_file(server, 1), has_file(server, 12)], [False, True], "the oldest is gone, the newest there")
    folder = os.path.join(state["disk"], "limit/cache/uploads")
    real = sum(os.stat(os.path.join(at, name)).st_blocks * 512 for at, _, names in os.walk(folder) for name in names)
    check(abs(real - used) <= MB, "what is counted is on the disk", (real, used))
    status, text = upload(server, 50, os.urandom(21 * MB))
    check(status == 413 and "--upload-disk" in text, "one that never fits: 413 and why", (status, text))
    check(has_file(server, 0), "and the others stay")
    status, text = upload(server, 51, bytes(16 * MB))
    equal(status, 201, "zeros at the end")
    check(metric(server, "upload_disk_bytes") <= used + MB, "take no room")
    listed = modules(server)
    equal(listed["uploads"]["limit_bytes"], 20 * MB, "the list of modules has the limit")
    check(any(m["build_id"] == build_id(51) and m["uploaded_files"] == 1 and m["uploaded_bytes"] < MB
              for m in listed["modules"]), "and what each takes", listed["modules"][:3])
    server.stop()
    server.start()
    equal([has_file(server, 0), metric(server, "upload_files") > 2], [True, True], "after a restart the same")
    check(abs(metric(server, "upload_disk_bytes") - used) < 8 * MB, "counted anew")
    server.stop()


def test_delete():
    server = of_disk("delete")
    equal(upload(server, 0)[0], 201, "uploaded")
    path = "/api/v1/modules/" + build_id(0)

    def row():
        return next((m for m in modules(server)["modules"] if m["build_id"] == build_id(0)), None)

    check(wait_for(lambda: row()["quality"] == "dwarf", 30), "it has names", row())

    def delete():
        status, _, body = server.request("DELETE", path)
        return (status, json.loads(body)) if status != 503 else None

    status, body = wait_for(delete, 20)
    equal([status, body["deleted_files"], body["deleted_tables"]], [200, 1, 1], "deleted: the file and its table")
    equal([row()["uploaded_files"], row()["quality"], has_file(server, 0)], [0, "none", False], "nothing is left of them")
    status, _, wanted = server.request("POST", "/api/v1/modules", "%s gnu program\n" % build_id(0),
                                       {"Content-Type": "text/plain"})
    equal([status, wanted], [200, b""], "an agent is not asked for it again at once")
    equal(server.request("DELETE", "/api/v1/modules/" + build_id(77))[0], 404, "one that nobody knows: 404")
    equal(server.request("DELETE", "/api/v1/modules/xyz")[0], 422, "no build-id: 422")
    with open(os.path.join(WORK, "delete.log"), encoding="utf-8") as log:
        lines = [line for line in log if "module deleted on request" in line]
    check(len(lines) == 1 and build_id(0) in lines[0] and "peer=127.0.0.1" in lines[0], "the log says who", lines)
    equal(upload(server, 0)[0], 201, "whoever has it may send it again")
    check(wait_for(lambda: row()["quality"] == "dwarf", 30), "and its names come again", row())
    server.stop()


def test_full_disk():
    for name in os.listdir(state["disk"]):
        subprocess.run(["rm", "-rf", os.path.join(state["disk"], name)], check=True)
    server = of_disk("full", "--upload-disk", "0")
    with open(os.path.join(state["disk"], "filler"), "wb") as file:
        os.posix_fallocate(file.fileno(), 0, free_bytes() - RESERVE - 60 * MB)
    least, answers = free_bytes(), []
    for number in range(8):
        answers.append(upload(server, number, os.urandom(8 * MB))[0])
        least = min(least, free_bytes())
    equal(answers, [201] * 8, "64 MB for a disk that may take less: each is taken")
    check(least >= RESERVE, "256 MB are always free", least)
    check(metric(server, "uploads_evicted_total") > 0, "older ones made room")
    status, text = upload(server, 20, os.urandom(80 * MB))
    check(status == 503 and "kept free" in text, "one that has no room on the disk: 503 and why", (status, text))
    check(free_bytes() >= RESERVE, "nothing is left of it", free_bytes())
    equal(server.get("/readyz")[0], 200, "reports are taken all the time")
    server.stop()


if os.geteuid() != 0:
    skip_all("needs root to mount a small disk")
state["disk"] = "/tmp/farflame-uploads-%d" % os.getpid()
os.makedirs(state["disk"])
if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d" % DISK, "tmpfs", state["disk"]], check=False).returncode:
    os.rmdir(state["disk"])
    skip_all("may not mount a tmpfs")
try:
    run(test_limit, test_delete, test_full_disk)
finally:
    subprocess.run(["umount", "-l", state["disk"]], check=False)
    os.rmdir(state["disk"])

# SPDX-License-Identifier: Apache-2.0
"""deploy/upload-symbols.sh as a build would use it: a folder with all sorts of files, run again, ended in between,
with the server away or refusing. With every POSIX shell there is."""
import hashlib
import http.server
import os
import re
import shutil
import signal
import subprocess
import threading
import time

from harness import WORK, Server, check, end, equal, free_port, note, run, skip_all, start, wait_for

SCRIPT = os.path.abspath("deploy/upload-symbols.sh")
SHELLS = [shell for shell in (["dash"], ["busybox", "sh"], ["bash", "--posix"]) if shutil.which(shell[0])]
state = {}


def sh(*arguments):
    return subprocess.run(arguments, capture_output=True, text=True, check=True).stdout


def build_id(path):
    return sh("readelf", "-n", path).split("Build ID: ")[1].split()[0]


def program(path, number, *options):
    source = os.path.join(WORK, "program.c")
    open(source, "w").write("int number = NUMBER;\nint main(void) { return number; }\n")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    sh("cc", "-g", "-DNUMBER=%d" % number, "-Wl,--build-id=0x" + hashlib.sha1(b"%d" % number).hexdigest(), *options, source,
       "-o", path)
    return path


def folder():
    """A build's output; state["ids"]: build-id → kinds of file it should leave on the server."""
    root = state["root"] = os.path.join(WORK, "a build")
    ids = state["ids"] = {}
    both = program(root + "/bin/with space", 1)
    ids[build_id(both)] = ("debuginfo", "executable")
    shutil.copy(both, root + "/bin/a copy of it")
    os.symlink("with space", root + "/bin/link")
    os.symlink("..", root + "/bin/loop")
    split = program(root + "/split/[b]{r,s}*?'\"$(x)", 2)
    ids[build_id(split)] = ("debuginfo", "executable")
    sh("objcopy", "--only-keep-debug", split, split + ".debug")
    sh("strip", split)
    library = program(root + "/lib/na\u00efve.so", 3, "-shared", "-fPIC")
    sh("strip", library)
    ids[build_id(library)] = ("executable",)
    program(root + "/bin/nobody", 4, "-Wl,--build-id=none")
    program(root + "/bin/-n", 5)
    ids[build_id(root + "/bin/-n")] = ("debuginfo", "executable")
    program(root + "/line\nbreak/x", 6)
    sh("cc", "-g", "-c", WORK + "/program.c", "-DNUMBER=1", "-o", root + "/object.o")
    sh("ar", "rc", root + "/lib.a", root + "/object.o")
    for name, text in (("empty", b""), ("words.txt", b"these are words\n"), ("magic", b"\x7fELF"), ("cut", open(both, "rb").read()[:700]),
                       ("null", bytes(5000))):
        open(os.path.join(root, name), "wb").write(text)
    os.mkfifo(root + "/fifo")
    os.symlink("/nowhere", root + "/dangling")


def upload(shell, *arguments, **more):
    done = subprocess.run([*shell, SCRIPT, *arguments], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, **more)
    return done.returncode, done.stdout, done.stderr


def summary(text):
    found = re.search(r"(\d+) sent \(.*\), (\d+) were there, (\d+) not needed, (\d+) failed(?:, (\d+) not tried)?$", text, re.M)
    return tuple(int(n or 0) for n in found.groups()) if found else None


def served(server, id_, kind):
    return server.request("HEAD", "/buildid/%s/%s" % (id_, kind))[0] == 200


def test_a_build():
    folder()
    for shell in SHELLS:
        server = Server(data="build-" + shell[0], log="build.log")
        status, out, err = upload(shell, state["root"], server.url + "/")
        check(status == 0 and summary(out) == (5, 0, 0, 0, 0), "%s: five files of four build-ids are sent" % shell[0], (status, out, err))
        wrong = [(i, kind) for i, kinds in state["ids"].items() for kind in ("debuginfo", "executable")
                 if served(server, i, kind) != (kind in kinds)]
        equal(wrong, [], "debug information and code of each, as far as there are any")
        check("line break" in err, "a name with a line break is told", err)
        status, out, err = upload(shell, state["root"], server.url)
        check(status == 0 and summary(out)[0] == 0 and summary(out)[2] == 5, "again: nothing is needed", (status, out, err))
        status, out, err = upload(shell, "--all", "--quiet", state["root"] + "/lib", state["root"] + "/split", server.url)
        check(status == 0 and summary(out) == (0, 3, 0, 0, 0) and len(out.splitlines()) == 1, "--all: sent, and was there", (out, err))
        status, out, err = upload(shell, "bin/-n", "-n", server.url, cwd=state["root"])
        check(status == 2 and "there is no -n" in err, "a folder that is not there: 2", err)
        server.stop()


def test_better_later():
    """First the stripped file, then with debug information; other sources are not waited for."""
    server = Server("--debuginfod", "http://127.0.0.1:%d" % free_port(), data="later", log="later.log")
    split = [name for name in os.listdir(state["root"] + "/split")]
    small = os.path.join(WORK, "small")
    os.makedirs(small)
    shutil.copy(os.path.join(state["root"], "split", min(split, key=len)), small + "/x")
    equal(summary(upload(SHELLS[0], small, server.url)[1]), (1, 0, 0, 0, 0), "a stripped file is sent")
    equal(summary(upload(SHELLS[0], state["root"] + "/split", server.url)[1]), (1, 0, 1, 0, 0), "then the debug file alone")
    row = wait_for(lambda: [r for r in server.json("/api/v1/modules")["modules"] if r["state"] == "ready"], 20)
    check(row and row[0]["quality"] == "dwarf", "which is converted", row)
    server.stop()


def test_away():
    begin = time.monotonic()
    status, out, err = upload(SHELLS[0], "--retries", "1", state["root"], "http://127.0.0.1:%d" % free_port())
    check(status == 1 and "does not say what it lacks" in err and "onnect" in err, "no server: 1 and a sentence", (status, err))
    check(time.monotonic() - begin < 15, "soon")
    for arguments, word in (((), "needed"), (("x",), "needed"), (("x", "ftp://y"), "URL"), (("--nonsense", "x", "http://y"), "no option"),
                            (("--retries", "x", "a", "http://y"), "number"), (("/nowhere", "http://y"), "there is no /nowhere"),
                            (("--token-file", "/nowhere", "/tmp", "http://y"), "token")):
        status, out, err = upload(SHELLS[0], *arguments)
        check(status == 2 and word in err, "%s: 2 naming %s" % (" ".join(arguments), word), (status, err))
    empty = os.path.join(WORK, "empty")
    os.makedirs(empty)
    status, out, err = upload(SHELLS[0], empty, "http://127.0.0.1:9")
    check(status == 1 and "no ELF file" in err, "nothing found: 1", err)


class Fake(http.server.BaseHTTPRequestHandler):
    """Wants everything; answers uploads as its list says, then with 201."""
    answers, seen = [], []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.reply(200, "\n".join(line.split()[0] for line in body.splitlines()) + "\n")

    def do_PUT(self):
        length = int(self.headers["Content-Length"])
        status = self.answers.pop(0) if self.answers else 201
        got = b"" if status == "stall" else self.rfile.read(length)
        self.seen.append((self.path, len(got), self.headers.get("Authorization")))
        if status == "stall":
            time.sleep(30)
        elif status == "close":
            self.close_connection = True
        else:
            self.reply(status, '{"error":{"code":"x","message":"the reason"}}')

    def reply(self, status, text):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *arguments):
        pass


def test_refusals():
    fake = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Fake)
    fake.daemon_threads = True
    threading.Thread(target=fake.serve_forever, daemon=True).start()
    url = "http://127.0.0.1:%d" % fake.server_address[1]
    token = os.path.join(WORK, "token")
    open(token, "w").write("se cret\n")
    Fake.answers = [413, 409, 422]
    status, out, err = upload(SHELLS[0], "--token-file", token, state["root"], url)
    check(status == 1 and summary(out) == (2, 0, 0, 3, 0), "413, 409 and 422: the others are sent, 1", (status, out, err))
    check(all("status %d: the reason" % n in err for n in (413, 409, 422)), "each with the server's sentence", err)
    equal({seen[2] for seen in Fake.seen}, {"Bearer se cret"}, "the token is sent")
    Fake.answers, Fake.seen[:] = [503, "close", 201], []
    status, out, err = upload(SHELLS[0], "--retries", "2", state["root"] + "/lib", url)
    check(status == 0 and summary(out)[0] == 1 and len(Fake.seen) == 3, "503 and a closed connection are tried again", (out, err))
    Fake.answers = ["close"] * 9
    status, out, err = upload(SHELLS[0], "--retries", "0", state["root"], url)
    check(status == 1 and summary(out)[3:] == (1, 4), "who does not answer is not asked for the others", (out, err))
    ends(url)
    fake.shutdown()


def ends(url):
    """A signal while a file is sent: over at once, nothing is left behind, and it goes on later."""
    temporary = os.path.join(WORK, "tmp")
    os.makedirs(temporary)
    for number, name in ((signal.SIGTERM, "SIGTERM"), (signal.SIGINT, "SIGINT")):
        Fake.answers, Fake.seen[:] = ["stall"], []
        child = start([*SHELLS[0], SCRIPT, state["root"], url], "ends.log", env=dict(os.environ, TMPDIR=temporary))
        check(wait_for(lambda: Fake.seen, 20, 0.05), "a file is being sent")
        status, took = end(child, 10, number)
        check(status == 128 + number and took < 3, "%s: over with %s in %.1f s" % (name, status, took))
        equal(os.listdir(temporary), [], "nothing is left behind")
    Fake.answers = []
    status, out, err = upload(SHELLS[0], state["root"], url)
    check(status == 0 and summary(out)[0] == 5, "and it goes on later", (out, err))
    leftover = sh("sh", "-c", "ps -eo args | grep -c '[c]url .*%s' || :" % url).strip()
    equal(leftover, "0", "no curl is left running")


if not shutil.which("curl") or not shutil.which("readelf") or not shutil.which("cc"):
    skip_all("needs curl, readelf and cc")
note("shells: %s" % SHELLS)
run(test_a_build, test_better_later, test_away, test_refusals)

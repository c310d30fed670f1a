# SPDX-License-Identifier: Apache-2.0
"""Where names come from: nothing, an upload, a real debuginfod, a symbol directory that fills later, a kill in
between. One stripped program, profiled once; each server loads the same file. In a network namespace of its own,
because debuginfod listens on every address it finds."""
import os
import shutil
import subprocess
import sys

if os.geteuid() == 0 and os.environ.get("FARFLAME_NETNS") != "1" and shutil.which("unshare"):
    os.environ["FARFLAME_NETNS"] = "1"
    os.execvp("unshare", ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh",
                          sys.executable, "-B"] + sys.argv)

from harness import (BUILD, PROGRAMS, WORK, Server, build_programs, check, end, equal, free_port, need_bpf, note, run,
                     skip, start, wait_for)

state = {}


def build_id(path):
    text = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    return text.split("Build ID: ")[1].split()[0]


def named(rows):
    return any("main" in frames and "level_1" in frames for frames, _ in rows)


def share_named(rows):
    mine = [(frames, n) for frames, n in rows if frames[0] == "stripped"]
    total = sum(n for _, n in mine)
    return sum(n for frames, n in mine if named([(frames, n)])) / total if total else 0


def module(server):
    for row in server.json("/api/v1/modules")["modules"]:
        if row["build_id"] == state["id"]:
            return row
    return {}


def test_record():
    """The stripped program and its debug file; one profile of it."""
    build_programs("chain_pie")
    program = os.path.join(WORK, "stripped")
    state["debug"] = os.path.join(WORK, "stripped.debug")
    subprocess.run(["objcopy", "--only-keep-debug", PROGRAMS + "/chain_pie", state["debug"]], check=True)
    subprocess.run(["strip", "-o", program, PROGRAMS + "/chain_pie"], check=True)
    state["program"], state["id"] = program, build_id(program)
    equal(build_id(state["debug"]), state["id"], "program and debug file have one build-id")
    child = start([program, "60"])
    state["profile"] = os.path.join(WORK, "profile.otlp")
    done = subprocess.run([BUILD + "/farflame-agent", "--output", state["profile"], "--duration", "4s",
                           "--frequency", "199", "--pid", str(child.pid)], capture_output=True, text=True)
    end(child)
    equal(done.returncode, 0, "the agent writes a profile of it")


def serve(name, *arguments):
    return Server("--import", state["profile"], *arguments, data=name, log=name + ".log")


def test_nothing_then_upload():
    server = serve("upload")
    rows = server.wait_for_names(lambda r: module(server).get("state") in ("missing", "failed"), 20)
    check(rows and share_named(rows) == 0, "without a source nothing has a name", rows[:3])
    check(all("+0x" in frames[-1] or frames[-1].endswith("_[k]") for frames, _ in rows if frames[0] == "stripped"),
          "but module+0x…", rows[:3])
    row = module(server)
    equal(row.get("state"), "missing", "the module is missing")
    check(len(row.get("reason", "")) > 20 and row.get("unsymbolized_share", 0) > 0.5,
          "with a reason and the share it leaves without names", row)
    path = "/api/v1/modules/" + state["id"]
    debug = open(state["debug"], "rb").read()
    other = "00" * 20
    equal(server.request("PUT", "/api/v1/modules/" + other, debug)[0], 409, "the same file under another id is 409")
    equal(server.request("PUT", path, b"these are words, not an ELF file")[0], 422, "a text is 422")
    equal(server.request("PUT", path, debug[:3000])[0], 422, "the beginning of a file is 422")
    equal(server.request("PUT", path, debug)[0], 201, "the debug file is 201")
    rows = server.wait_for_names(named, 30)
    check(share_named(rows) > 0.95, "what was taken before the upload has names now", "share %.3f" % share_named(rows))
    equal(server.request("PUT", path, debug)[0], 200, "the same again is 200")
    row = module(server)
    check(row.get("state") == "ready" and row.get("quality") == "dwarf" and row.get("source") == "upload",
          "the module is ready, by upload", row)
    equal(server.request("PUT", path, open(state["program"], "rb").read())[0] in (200, 201), True,
          "the stripped program afterwards is taken")
    check(share_named(server.folded()) > 0.95, "and does not replace the better one")
    server.kill()
    server.start()
    check(share_named(server.wait_for_names(named, 30)) > 0.95, "names are there after SIGKILL and a new start")
    server.stop()


def names_from(daemon_arguments, name):
    """A server whose only source is a debuginfod started so."""
    port = free_port()
    daemon = start(["debuginfod", "-d", WORK + "/%s.db" % name, "-p", str(port), *daemon_arguments], name + "d.log")
    url = "http://127.0.0.1:%d" % port
    find = ["curl", "-fsS", "-o", "/dev/null", "%s/buildid/%s/debuginfo" % (url, state["id"])]
    check(wait_for(lambda: subprocess.run(find, capture_output=True).returncode == 0, 30),
          "%s: a real debuginfod serves the debug file" % name)
    server = serve(name, "--debuginfod", url)
    rows = server.wait_for_names(named, 60)
    check(share_named(rows) > 0.95, "%s: names come from debuginfod" % name, "%s\n%s" % (module(server), rows[:3]))
    check(url in module(server).get("source", ""), "%s: and the module says so" % name, module(server))
    end(daemon)
    return server


def test_debuginfod():
    """Debian's own server, over a folder of files and over a package as dpkg-deb makes it."""
    if not shutil.which("debuginfod"):
        skip("needs debuginfod")
        return
    folder, packages, tree = (os.path.join(WORK, name) for name in ("served", "packages", "tree"))
    place = os.path.join(tree, "usr/lib/debug/.build-id", state["id"][:2])
    for path in (folder, packages, place, tree + "/DEBIAN"):
        os.makedirs(path)
    shutil.copy(state["debug"], folder)
    shutil.copy(state["debug"], os.path.join(place, state["id"][2:] + ".debug"))
    with open(tree + "/DEBIAN/control", "w") as control:
        control.write("Package: chain-dbgsym\nVersion: 1\nArchitecture: amd64\nMaintainer: nobody <n@example.org>\n"
                      "Description: debug information of a test\n")
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, packages + "/chain-dbgsym_1_amd64.deb"],
                   check=True, capture_output=True)
    names_from(["-F", folder, "-t", "0"], "files").stop()
    # -U is the same with bsdtar, which few have.
    names_from(["-Z", ".deb=dpkg-deb --fsys-tarfile", packages, "-t", "0"], "package").stop()


def test_debuginfod_away():
    server = serve("away", "--debuginfod", "http://127.0.0.1:%d" % free_port())
    begin = wait_for(lambda: module(server).get("state") in ("missing", "failed", "wanted"), 30)
    check(begin and server.get("/api/v1/flamegraph", timeout=5, from_="now-15m")[0] == 200,
          "a source that is down delays no answer", module(server))
    check(module(server).get("reason"), "and stands in the reason", module(server))
    note("state: %s" % module(server))
    server.stop()


def test_directory_that_fills():
    folder = os.path.join(WORK, "symbols")
    os.makedirs(folder)
    server = serve("directory", "--symbol-dir", folder)
    server.wait_for_names(lambda r: module(server).get("state") == "missing", 20)
    place = os.path.join(folder, ".build-id", state["id"][:2])
    os.makedirs(place)
    shutil.copy(state["debug"], os.path.join(place, state["id"][2:] + ".debug"))
    rows = server.wait_for_names(named, 90)
    check(share_named(rows) > 0.95, "a file that appears in --symbol-dir is noticed without a restart",
          module(server))
    server.stop()


need_bpf()
run(test_record, test_nothing_then_upload, test_debuginfod, test_debuginfod_away, test_directory_that_fills)

# SPDX-License-Identifier: Apache-2.0
"""Kernel frames agree with /proc/kallsyms: by address, in the bytes the agent writes, and by name, in what
the server shows of them."""
import bisect
import os
import sys

from harness import BUILD, PROGRAMS, WORK, Agent, Server, build_programs, check, need_bpf, note, run, skip_all, start

sys.path.insert(0, "tests/tools")
import otlp  # noqa: E402


def kallsyms():
    """Address → names, for code of the kernel proper; sorted addresses; and _text."""
    names, text = {}, 0
    for line in open("/proc/kallsyms"):
        part = line.split()
        if len(part) == 3:
            address = int(part[0], 16)
            if part[2] == "_text":
                text = address
            if part[1] in "tTwW":
                names.setdefault(address, set()).add(part[2].split(".")[0])
    if not text:
        skip_all("/proc/kallsyms shows no addresses (kptr_restrict)")
    return names, sorted(names), text


def kernel_frames():
    build_programs("syscall_loop")
    names, addresses, text = kallsyms()
    many = os.path.join(WORK, "many")
    os.makedirs(many)
    for i in range(500):
        open(os.path.join(many, "file-%d" % i), "w").close()
    load = start([PROGRAMS + "/syscall_loop", many, "30"])
    server = Server()
    file = os.path.join(WORK, "kernel.otlp")
    # The same time twice: once into a file, whose addresses are looked at; once to the server, for the names.
    writer = Agent("--frequency", "499", "--duration", "5s", "--output", file, "--pid", str(load.pid), log="writer.log")
    sender = Agent("--frequency", "499", "--report-interval", "1s", "--pid", str(load.pid), server=server)
    status = writer.process.wait(60)
    check(status == 0, "--output with --duration ends by itself, status 0", writer.text()[-500:])
    by_address, outside, samples = {}, 0, 0
    for sample in otlp.Reader(otlp.read(BUILD, file)).samples():
        samples += sample.count
        for frame in sample.frames:
            if frame.kind != "kernel" or frame.base != "_text":
                continue
            if frame.address > 1 << 40:
                outside += 1
            at = bisect.bisect_right(addresses, frame.address + text) - 1
            for name in names[addresses[at]]:
                by_address[name] = by_address.get(name, 0) + sample.count
    check(outside == 0, "no kernel address carries KASLR: all are small offsets from _text", outside)
    note("by address: %s" % sorted(by_address.items(), key=lambda item: -item[1])[:12])
    for part in ("__x64_sys_getdents64", "iterate_dir", "vfs_read"):
        check(by_address.get(part, 0) > 0, "addresses lie in %s, as kallsyms has it" % part)
    rows = server.wait_for_names(lambda rows: any("iterate_dir_[k]" in f for f, _ in rows),
                                 match='{process="syscall_loop"}')
    check(sender.stop()[0] == 0, "the agent ends with status 0", sender.text()[-500:])
    rows = server.folded(match='{process="syscall_loop"}')
    shown, unknown = {}, set()
    everything = set().union(*names.values())
    total = sum(value for _, value in rows)
    for frames, value in rows:
        for frame in frames:
            if frame.endswith("_[k]"):
                name = frame[:-4].split(".")[0]
                shown[name] = shown.get(name, 0) + value
                if name not in everything:
                    unknown.add(name)
    check(shown and not unknown, "every kernel name shown is one of kallsyms", "%s" % sorted(unknown)[:10])
    chain = sum(v for f, v in rows if "list_directory" in f and "iterate_dir_[k]" in f
                and f.index("list_directory") < f.index("iterate_dir_[k]"))
    check(chain > 0.1 * total, "getdents' kernel frames lie above list_directory", "%d of %d" % (chain, total))
    # Two agents, one program, the same seconds: the shares of the common functions agree.
    for name in ("iterate_dir", "vfs_read"):
        mine, theirs = by_address.get(name, 0) / max(samples, 1), shown.get(name, 0) / max(total, 1)
        check(abs(mine - theirs) < 0.1, "%s: share by address and by name agree" % name, "%.3f %.3f" % (mine, theirs))


need_bpf()
run(kernel_frames)

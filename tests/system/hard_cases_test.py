# SPDX-License-Identifier: Apache-2.0
"""The hard cases of symbolization by number, each with a file built here from tests/programs/symbols: what the conversion
names, and nothing else. Expected is what readelf, llvm-symbolizer or addr2line say of the same file, at every byte of its
code. 24, Go without DWARF, and 25, other files of the same build-id, have tests of their own."""
import os
import re
import shutil
import subprocess
import sys

from harness import WORK, check, equal, note, run, skip, symbolize_tool

sys.path.insert(0, "tests/tools")
import agree_with_llvm as agree  # noqa: E402

SOURCES = os.path.abspath("tests/programs/symbols")
SHARED = ["-shared", "-fPIC", "-nostdlib", "-O2"]
ADDRESSES_MAX = 6000


def has(*programs):
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        skip("needs " + " ".join(missing))
    return not missing


def do(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=WORK, **more)
    if done.returncode:
        raise RuntimeError("%s: %s" % (" ".join(command), done.stderr[-1500:]))
    return done.stdout


def build(output, *command):
    """Builds WORK/output; names of sources are those of SOURCES."""
    do(*(os.path.join(SOURCES, word) if os.path.exists(os.path.join(SOURCES, word)) else word for word in command),
       "-o", output)
    return os.path.join(WORK, output)


def path_of(name):
    return os.path.join(WORK, name)


def ask(files, addresses):
    """(frames of each address, what was said on stderr)."""
    done = subprocess.run([symbolize_tool(), *files], input="".join("%#x\n" % a for a in addresses), capture_output=True, text=True,
                          errors="replace", timeout=60)
    answers = [agree.frames_of(block) for block in done.stdout.rstrip("\n").split("\n\n")] if done.stdout else []
    if len(answers) != len(addresses):
        raise RuntimeError("%d answers for %d addresses: %s" % (len(answers), len(addresses), done.stderr))
    return answers, done.stderr


def names(files, addresses):
    return [frames[-1][0] for frames in ask(files, addresses)[0]]


def flags_of(said):
    return int(re.search(r"flags (\d+)", said)[1])


def sections(path, wanted=lambda name: True):
    """Executable sections as {name: (start, end)}."""
    text = do("readelf", "-SW", path)
    return {row[0]: (int(row[1], 16), int(row[1], 16) + int(row[2], 16)) for row in re.findall(
        r"^\s*\[\s*\d+\] (\S+)\s+(?:PROGBITS|NOBITS)\s+([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+) \S+\s+A\S*X", text, re.M)
        if wanted(row[0])}


def every_byte(path):
    ranges = list(sections(path, lambda name: not name.startswith((".plt", ".iplt"))).values())
    step = 1 + sum(end - start for start, end in ranges) // ADDRESSES_MAX
    return [address for start, end in ranges for address in range(start, end, step)]


def symbols(path):
    """Sized functions as {name: (start, size)}, as readelf has them."""
    return {field[7]: (int(field[1], 16), int(field[2], 0)) for field in map(str.split, do("readelf", "-sW", path).split("\n"))
            if len(field) == 8 and field[3] in ("FUNC", "IFUNC") and field[6] != "UND" and int(field[2], 0)}


def differences(path, files=None):
    """Where we differ from llvm-symbolizer, by agree_with_llvm.py's rules; every byte of code is asked."""
    addresses = every_byte(path)
    theirs = agree.ask([agree.LLVM, "--obj=" + path, "--output-style=LLVM", "--no-demangle"], addresses)
    ours, _ = ask(files or [path], addresses)
    judge = agree.Judge(path, agree.Symbols(path, agree.sections(path)), {f[0] for chain in theirs for f in chain})
    found = []
    for address, llvm, mine in zip(addresses, theirs, ours):
        classes = judge.classes(address, llvm, mine) - set(agree.EQUAL)
        if classes:
            found.append("%#x %s\n  llvm %s\n  ours %s" % (address, sorted(classes), llvm, mine))
    return addresses, found


def agrees(text, path, files=None):
    addresses, found = differences(path, files)
    return check(not found and len(addresses) > 20, "%s: as llvm-symbolizer at %d addresses" % (text, len(addresses)),
                 "%d differences\n%s" % (len(found), "\n".join(found[:8])))


def named_as_readelf(text, path, files=None):
    """Every byte has the name of a symbol that readelf shows over it, and none where there is none."""
    addresses, rows, wrong = every_byte(path), symbols(path), []
    plain = agree.demangle({agree.bare(name) for name in rows})
    for address, got in zip(addresses, names(files or [path], addresses)):
        want = {plain[agree.bare(name)] for name, (start, size) in rows.items() if start <= address < start + size}
        if (got not in want) if want else (got != "??"):
            wrong.append("%#x: %s, readelf has %s" % (address, got, sorted(want)))
    return check(not wrong and len(addresses) > 20, "%s: names as readelf's, %d addresses" % (text, len(addresses)),
                 "%d differ\n%s" % (len(wrong), "\n".join(wrong[:8])))


def debug_info(path, pattern):
    """Is that in the file's DWARF? A test of what a compiler does not write any more would test nothing."""
    return check(re.search(pattern, do("readelf", "--debug-dump=info", "-W", path)), "the file has " + pattern)


# --- the cases ---

def case_01_link_time_optimization():
    path = build("lto.so", "gcc", "-g", "-flto", "-fno-semantic-interposition", *SHARED, "whole_a.c", "whole_b.c")
    debug_info(path, "DW_TAG_imported_unit|DW_AT_abstract_origin.*<0x")
    chains = ask([path], every_byte(path))[0]
    check(any([f[0] for f in chain] == ["mix", "shared_step", "whole_entry"] for chain in chains),
          "1: chains of inlined calls across files")
    agrees("1 link-time optimization", path)


def case_02_functions_in_namespaces():
    if has("clang++"):
        agrees("2 clang's functions in namespaces", build("nested_clang.so", "clang++", "-g", "-fno-exceptions", *SHARED, "nested.cc"))
    if has("rustc"):
        path = build("nested_rs.so", "rustc", "-g", "-O", "nested.rs")
        wanted = {name: start for name, (start, size) in symbols(path).items() if "nested" in name or name == "rust_entry"}
        plain = agree.demangle(wanted)
        equal(names([path], list(wanted.values())), [plain[name] for name in wanted], "2 Rust's functions in modules, %d" % len(wanted))


def case_03_methods_of_local_classes():
    path = build("nested.so", "g++", "-g", "-fno-exceptions", *SHARED, "nested.cc")
    run_name = [name for name in symbols(path) if "local3run" in name]
    equal(len(run_name), 1, "3: readelf has the local class's method")
    start = symbols(path)[run_name[0]][0]
    chain = ask([path], [start])[0][0]
    equal((chain[-1][0], chain[-1][2]), (agree.demangle(run_name)[run_name[0]], int(
        re.search(r":(\d+)", do("addr2line", "-e", path, "%#x" % start))[1])), "3 a local class's method: name and line as addr2line's")
    agrees("3 the whole file", path)


def case_04_no_aranges():
    if not has("clang"):
        return
    path = build("no_aranges.so", "clang", "-g", "-O2", "-shared", "-fPIC", "-nostdlib", "whole_a.c", "whole_b.c")
    check(".debug_aranges" not in do("readelf", "-SW", path), "4: the file has no .debug_aranges")
    agrees("4 no .debug_aranges", path)


def inlines():
    return build("inlines.so", "gcc", "-g", *SHARED, "inlines.c")


def case_05_lines_outside_of_functions():
    path = build("raw_code.so", "gcc", "-g", "-fno-toplevel-reorder", *SHARED, "raw_code.c")
    start, size = symbols(path)["raw_code"]
    got = [chain[0][::2] for chain in ask([path], range(start, start + size))[0]]
    want = [("raw_code", int(line)) for line in re.findall(r":(\d+)", do("addr2line", "-e", path, *("%#x" % a for a in range(start, start + size))))]
    equal(got, want, "5 lines that no function has: the symbol's name, addr2line's lines")


def case_06_hot_and_cold_parts():
    path = inlines()
    cold = {name: row for name, row in symbols(path).items() if name.endswith(".cold")}
    check(cold, "6: the compiler split a cold part off")
    for name, (start, size) in cold.items():
        equal(set(names([path], range(start, start + size))), {name[:-5]}, "6 a cold part is called like its function")
    agrees("6 and as llvm-symbolizer", path)


def case_07_inlined_in_several_ranges():
    path = inlines()
    dump = do("readelf", "--debug-dump=info", "-W", path)
    check(re.search(r"DW_TAG_inlined_subroutine\)\n(?:(?!Abbrev).*\n)*?.*DW_AT_ranges", dump), "7: an inlined call has several ranges")
    rows = [chain for chain in ask([path], every_byte(path))[0] if chain[0][0] == "checked"]
    equal({chain[1][0] for chain in rows}, {"hot_and_cold"}, "7 an inlined call in several ranges (%d bytes of it)" % len(rows))


def case_08_one_line_several_chains():
    path = inlines()
    start, size = symbols(path)["on_one_line"]
    chains = ask([path], range(start, start + size))[0]
    depths = {tuple(f[0] for f in chain) for chain in chains if len({f[2] for f in chain}) < len(chain) + 1}
    check({("first", "on_one_line"), ("first", "second", "on_one_line")} <= depths, "8 calls on one line keep their own chains", depths)


def case_09_ranges_of_bad_producers():
    path = build("sticking_out.so", "gcc", "-shared", "-nostdlib", "sticking_out.s")
    start, size = symbols(path)["outer"]
    got = [[frame[0] for frame in chain] for chain in ask([path], range(start, start + 2 * size))[0]]
    equal([chain[-1] for chain in got], ["outer"] * 16 + ["??"] * 16, "9 what sticks out of a function ends with it")
    equal(got[4:8] + got[12:16], [["lies_over", "outer"]] * 4 + [["sticks_out", "outer"]] * 4, "9 and is inlined inside of it")


def case_10_line_zero():
    if not has("clang"):
        return
    path = build("line_zero.so", "clang", "-gdwarf-4", *SHARED, "line_zero.c")
    start, size = symbols(path)["line_zero"]
    got = [chain[0][2] for chain in ask([path], range(start, start + size))[0]]
    want = [chain[0][2] for chain in agree.ask([agree.LLVM, "--obj=" + path, "--output-style=LLVM"], range(start, start + size))]
    equal(got, want, "10 line 0 is unknown, of two rows at one address the last counts")
    check(0 in got and 5002 in got and 5001 not in got, "10: and the file has both", got)


def case_11_gaps():
    path = build("gaps.so", "gcc", "-g", "-falign-functions=64", *SHARED, "inlines.c")
    named_as_readelf("11 padding has no name", path)
    stripped = path_of("gaps_names.so")
    do("strip", "-g", path, "-o", stripped)
    named_as_readelf("11 nor without DWARF", stripped)
    start, size = symbols(path)["last_call_never_returns"]
    equal(names([path], [start + size - 1, start + size]), ["last_call_never_returns", "??"],
          "11 a call that never returns: the address less one is the caller's, the address itself is nobody's")


def case_12_dead_code():
    for linker in "bfd", "gold", "lld":
        for version in "4", "5":
            if not has("ld." + linker):
                continue
            path = build("dead_%s_%s" % (linker, version), "gcc", "-g", "-gdwarf-" + version, "-O1", "-ffunction-sections", "-nostdlib",
                         "-fno-pic", "-static", "-no-pie", "-fuse-ld=" + linker, "-Wl,--gc-sections", "-Wl,-e,live_entry",
                         *(["-Wl,--image-base=0x1000"] if linker == "lld" else ["-Wl,-Ttext=0x2000"]), "dead.c")
            check("dead_first" not in symbols(path) and "live_helper" in symbols(path), "12: the linker threw dead code away")
            named_as_readelf("12 dead code of %s, DWARF %s" % (linker, version), path)


def case_13_identical_code():
    for linker in "gold", "lld":
        if not has("ld." + linker):
            continue
        seen = set()
        for order in ("one.o", "two.o"), ("two.o", "one.o"):
            build("one.o", "gcc", "-g", "-O2", "-fPIC", "-ffunction-sections", "-DFIRST", "-c", "twins.c")
            build("two.o", "gcc", "-g", "-O2", "-fPIC", "-ffunction-sections", "-c", "twins.c")
            path = build("twins_" + linker, "gcc", "-shared", "-nostdlib", "-fuse-ld=" + linker, "-Wl,--icf=all", *order)
            rows = symbols(path)
            equal(len({rows[name][0] for name in ("twin_one", "twin_two", "_twin_zero")}), 1, "13: %s folded them" % linker)
            do("strip", "-g", path, "-o", path + ".names")
            seen |= set(names([path + ".names"], [rows["twin_one"][0]]))
        equal(seen, {"twin_one"}, "13 folded functions have one name in whatever order %s had them" % linker)


def case_14_aliases_and_versions():
    path = build("aliases.so", "gcc", "-g0", *SHARED, "-Wl,--version-script=" + os.path.join(SOURCES, "aliases.map"), "aliases.c")
    text = do("readelf", "-sW", path)
    check("shape@@VERSION_2" in text and "__GI_many" in text, "14: readelf has versions and aliases")
    rows = symbols(path)
    got = names([path], [rows["many"][0], rows["old_shape"][0], rows["new_shape"][0], rows["resolved"][0], rows["chosen"][0]])
    equal(got, ["many", "shape", "shape", "resolved", "chosen"], "14 one rule for aliases, names without versions")
    do("strip", path, "-o", path + ".stripped")
    equal(names([path + ".stripped"], [rows["many"][0], rows["old_shape"][0], rows["new_shape"][0]]), ["many", "shape", "shape"],
          "14 and the same from .dynsym")
    do("objcopy", "-R", ".hash", "-R", ".gnu.hash", "-R", ".eh_frame_hdr", path + ".stripped", path + ".removed")
    check(names([path + ".removed"], [rows["many"][0]]) == ["many"], "14 and where sections were removed before the code's")


def case_15_constructors():
    path = build("nested.so", "g++", "-g", "-fno-exceptions", *SHARED, "nested.cc")
    rows = {name: start for name, (start, size) in symbols(path).items() if re.match(r"_ZN.*[CD][0-4](Ev|Ei)$", name)}
    kinds = {re.search(r"[CD][0-4]", name[-5:])[0] for name in rows}
    check({"C1", "C2", "D0", "D1", "D2"} <= kinds, "15: constructors and destructors of every kind", kinds)
    plain = agree.demangle(rows)
    equal(names([path], list(rows.values())), [plain[name] for name in rows], "15 they have one text, c++filt's")
    equal(len(set(plain.values())), 4, "15: so that two classes have four names")


def case_16_no_linkage_name():
    path = build("nested.so", "g++", "-g", "-fno-exceptions", *SHARED, "nested.cc")
    rows = {name: start for name, (start, size) in symbols(path).items() if "_GLOBAL__N_1" in name or "Ul" in name}
    check(len(rows) >= 3, "16: static functions, of namespaces without names and closures", sorted(rows))
    plain = agree.demangle({agree.bare(name) for name in rows})
    equal(names([path], list(rows.values())), [plain[agree.bare(name)] for name in rows], "16 their names are the symbol table's, as c++filt has them")


def case_17_symbols_of_assembler_code():
    path = build("labels.so", "gcc", "-shared", "-nostdlib", "labels.s")
    at = {field[7]: int(field[1], 16) for field in map(str.split, do("readelf", "-sW", path).split("\n")) if len(field) == 8 and field[0] != "Num:"}
    want = {}
    for name, start, length in (("unsized_first", "unsized_first", 24), ("sized_function", "sized_function", 16), ("??", "sized_function", 32),
                                ("unsized_function", "unsized_function", 16), ("??", "table", 48), ("both", "both", 16),
                                ("last_label", "last_label", 16), ("second_section", "second_section", 16)):
        for i in range(length):
            want.setdefault(at[start] + i, name)
    for i in range(1, 17):
        want.setdefault(at["second_section"] - i, "??")
    got = dict(zip(want, names([path], list(want))))
    equal({"%#x" % a: n for a, n in got.items() if n != want[a]}, {}, "17 sizes, labels, data among code, ends of sections: %d addresses" % len(want))


def stub_names(path, disassembler):
    text = do(disassembler, "-d", "--no-show-raw-insn", *(["-j" + name for name in sections(path) if ".plt" in name]), path)
    return {int(a, 16): name for a, name in re.findall(r"^([0-9a-f]+) <([^>]*@plt)>:$", text, re.M)}


STUBS = {
    "gcc": ["gcc"], "gcc -z ibtplt": ["gcc", "-fcf-protection", "-Wl,-z,ibtplt"], "gcc -z now": ["gcc", "-Wl,-z,now"],
    "gcc -m32": ["gcc", "-m32"], "gold": ["gcc", "-fuse-ld=gold"], "lld": ["gcc", "-fuse-ld=lld"],
    "mold": ["gcc", "-fuse-ld=mold"],
    "aarch64": ["clang", "--target=aarch64-linux-gnu", "-fuse-ld=lld"],
    "aarch64 with BTI and PAC": ["clang", "--target=aarch64-linux-gnu", "-mbranch-protection=standard", "-fuse-ld=lld", "-Wl,-z,pac-plt"],
    "i386 by lld": ["clang", "--target=i386-linux-gnu", "-fuse-ld=lld"],
    "arm": ["clang", "--target=armv7-linux-gnueabi", "-fuse-ld=lld"], "riscv64": ["clang", "--target=riscv64-linux-gnu", "-fuse-ld=lld"],
    "riscv32": ["clang", "--target=riscv32-linux-gnu", "-fuse-ld=lld"],
}


def case_17_stubs():
    for text, (compiler, *words) in STUBS.items():
        try:
            path = build("stubs.so", compiler, *words, *SHARED, "stubs.c")
        except (RuntimeError, OSError) as error:
            skip("17 stubs, %s: does not build here (%s)" % (text, str(error).strip().split("\n")[-1][:80]))
            continue
        want = stub_names(path, "objdump" if compiler == "gcc" and "mold" not in text else "llvm-objdump-19")
        if not want:  # llvm-objdump names no stubs there; they are in the order of their relocations
            want = stubs_by_order(path)
        plain = {a: re.sub(r"@.*@", "@", name) for a, name in want.items()}
        got = dict(zip(plain, names([path], list(plain))))
        check(got == plain and len(got) >= 4, "17 stubs, %s: %s" % (text, " ".join(sorted(set(got.values())))), "want %s\ngot %s" % (plain, got))


def stubs_by_order(path):
    rows = re.findall(r"_JUMP_SLOT\s+[0-9a-f]+\s+(\S+)", do("readelf", "-rW", path))
    start, _ = sections(path)[".plt"]
    return {start + 32 + 16 * i: name + "@plt" for i, name in enumerate(rows)}


def case_17_stubs_of_separate_files():
    path = build("stubs.so", "gcc", "-g", *SHARED, "stubs.c")
    want = stub_names(path, "objdump")
    do("objcopy", "--only-keep-debug", path, path + ".debug")
    do("strip", path, "-o", path + ".stripped")
    got = names([path + ".debug", path + ".stripped"], list(want))
    equal(got, list(want.values()), "17 stubs, when the code is in another file than the debug information")


def case_18_split_dwarf():
    if not has("clang", "llvm-dwp-19"):
        return
    shutil.rmtree(path_of("split"), ignore_errors=True)
    os.makedirs(path_of("split"))
    build("split/one.o", "clang", "-g", "-gsplit-dwarf", "-O2", "-fPIC", "-c", "whole_b.c")
    path = build("split/split.so", "clang", "-shared", "-nostdlib", "split/one.o")
    dwo = path_of("split/one.dwo")
    do("llvm-dwp-19", dwo, "-o", "split/split.so.dwp")
    agrees("18 split DWARF with its .dwp", path, [path, path + ".dwp"])
    os.unlink(path + ".dwp")
    with_dwo = [path, dwo]
    check(any(len(chain) > 1 for chain in ask(with_dwo, every_byte(path))[0]), "18: with its .dwo there are inlined calls")
    agrees("18 split DWARF with its .dwo", path, with_dwo)
    os.rename(dwo, dwo + ".away")
    answers, said = ask([path], every_byte(path))
    check(flags_of(said) & 1 and all(len(chain) == 1 for chain in answers), "18 without both it is said, and no inlined call made up")
    named_as_readelf("18 without both", path)
    os.rename(dwo + ".away", dwo)


def case_19_dwz():
    if not has("dwz"):
        return
    for name, level in ("one", "-O2"), ("two", "-O1"):
        build(name, "g++", "-g", level, "-shared", "-fPIC", "-nostdlib", "-fno-exceptions", "nested.cc", "-Wl,--build-id")
    shutil.copy(path_of("one"), path_of("whole"))
    do("dwz", "-m", "common.dwz", "one", "two")
    check(".gnu_debugaltlink" in do("readelf", "-SW", "one"), "19: dwz shared something")
    agrees("19 dwz with its shared file", path_of("whole"), [path_of("one"), path_of("common.dwz")])
    answers, said = ask([path_of("one")], every_byte(path_of("whole")))
    check(flags_of(said) & 2, "19 without the shared file it is said")
    named_as_readelf("19 without it", path_of("whole"), [path_of("one")])
    # another shared file than the one that is meant, and one that means itself
    for name in "three", "four":
        build(name, "g++", "-g", "-shared", "-fPIC", "-nostdlib", "-fno-exceptions", "-O3" if name == "three" else "-Os", "nested.cc", "-Wl,--build-id")
    do("dwz", "-m", "other.dwz", "three", "four")
    named_as_readelf("19 with another file's shared file", path_of("whole"), [path_of("one"), path_of("other.dwz")])
    check(flags_of(ask([path_of("one"), path_of("other.dwz")], [0])[1]) & 2, "19: and it is said")
    identity = bytes.fromhex(re.search(r"Build ID: (\w+)", do("readelf", "-n", "whole"))[1])
    open(path_of("link"), "wb").write(b"one\0" + identity)
    do("objcopy", "--update-section", ".gnu_debugaltlink=link", "one", "itself")
    named_as_readelf("19 a file that is its own shared file ends", path_of("whole"), [path_of("itself")])


def case_20_compressed_sections():
    machines = {"x86_64": ["gcc"], "i386": ["gcc", "-m32"]}
    if has("clang", "ld.lld"):
        for machine in "aarch64_be", "powerpc", "powerpc64le", "mips", "armv7":
            machines[machine] = ["clang", "--target=%s-linux-gnu" % machine, "-fuse-ld=lld"]
    for machine, command in machines.items():
        try:
            path = build("plain.so", *command, "-g", *SHARED, "whole_a.c", "whole_b.c")
        except RuntimeError as error:
            skip("20 %s does not build here: %s" % (machine, str(error)[-80:]))
            continue
        agrees("20 %s" % machine, path)
        want = ask([path], every_byte(path))[0]
        for kind in ["zlib", "zstd"] + (["zlib-gnu"] if machine in ("x86_64", "i386") else []):
            packed = path_of("packed.so")
            do("objcopy" if kind == "zlib-gnu" else "llvm-objcopy-19", "--compress-debug-sections=" + kind, path, packed)
            text = do("readelf", "-tW" if kind != "zlib-gnu" else "-SW", packed)
            if not re.search("zdebug" if kind == "zlib-gnu" else "COMPRESSED", text):
                skip("20 %s on %s: nothing was compressed" % (kind, machine))
                continue
            equal(ask([packed], every_byte(path))[0], want, "20 %s on %s: the same as without" % (kind, machine))


def mini_debug_info(stripped, symbols_of, packed="mini.xz"):
    """As distributions make it: only the symbols that .dynsym has not."""
    def named(*options):
        return set(re.findall(r"^(\S+) [Tt] ", do("nm", "--format=posix", "--defined-only", *options, symbols_of), re.M))
    open(path_of("keep"), "w").write("\n".join(sorted(named() - named("-D"))))
    do("objcopy", "--only-keep-debug", symbols_of, "mini.debug")
    do("objcopy", "-S", "--keep-symbols=keep", "mini.debug", "mini")
    do("xz", "-kf", "mini")
    do("strip", symbols_of, "-o", stripped)
    do("objcopy", "--add-section", ".gnu_debugdata=" + packed, stripped)


def case_21_gnu_debugdata():
    path = build("hidden.so", "gcc", "-fvisibility=default", *SHARED, "hidden.c")
    mini_debug_info("hidden.stripped", "hidden.so")
    rows = symbols(path)
    check("hidden_function" not in do("readelf", "-sW", "hidden.stripped"), "21: the stripped file's own tables have it not")
    named_as_readelf("21 .gnu_debugdata", path, [path_of("hidden.stripped")])
    hidden = rows["hidden_function"][0]
    data = open(path_of("mini.xz"), "rb").read()
    zeros = subprocess.run("head -c 400000000 /dev/zero | xz -0", shell=True, capture_output=True, check=True).stdout
    lzma_big = subprocess.run(["xz", "--lzma2=preset=0,dict=1GiB"], input=b"x" * 1000, capture_output=True, check=True).stdout
    for text, broken in (("cut short", data[:len(data) // 2]), ("not xz", b"\x7fELF" * 50), ("400 MB of zeros", zeros),
                         ("a decoder of 1 GiB", lzma_big), ("xz, but no ELF file", subprocess.run(["xz"], input=b"text", capture_output=True, check=True).stdout)):
        open(path_of("broken.xz"), "wb").write(broken)
        mini_debug_info("broken.stripped", "hidden.so", "broken.xz")
        answers, said = ask([path_of("broken.stripped")], [hidden, rows["shown_function"][0]])
        equal([chain[-1][0] for chain in answers], ["??", "shown_function"], "21 .gnu_debugdata %s: the other names are there" % text)
        check(flags_of(said) & 12, "21: and it is said", said)


def case_22_kernel():
    path = build("kernel", "gcc", "-static", "-no-pie", "-nostdlib", "-Wl,--build-id", "-Wl,-T," + os.path.join(SOURCES, "kernel.ld"), "kernel.s")
    notes = do("readelf", "-nW", path)
    check(notes.index("Linux") < notes.index("GNU"), "22: GNU's note is behind another one")
    named_as_readelf_in_code("22 a kernel: .init.text has names, per-CPU and absolute symbols have none", path)
    build("module.o", "gcc", "-g", "-O2", "-c", "whole_b.c")
    build("start.o", "gcc", "-g", "-O2", "-DFIRST", "-c", "twins.c")
    do("objcopy", "--rename-section", ".text=.init.text", "start.o")
    do("ld", "-r", "module.o", "start.o", "-o", "module.ko")
    path, start, end = path_of("module.ko"), *sections(path_of("module.ko"))[".text"]
    want = agree.frames_of(do("addr2line", "-j", ".text", "-f", "-e", path, *("%#x" % a for a in range(start, end))).rstrip("\n"))
    got = [chain[0] for chain in ask([path], range(start, end))[0]]
    padding = {a for a in range(start, end) if not any(low <= a < low + size for name, (low, size) in symbols(path).items() if "sha" in name)}
    equal([row for a, row in zip(range(start, end), got) if a not in padding],
          [row for a, row in zip(range(start, end), want) if a not in padding], "22 a module's .text: as addr2line -j .text")
    check({name for name, _, _ in got} <= {"mix", "shared_step", "shared_walk", "??"}, "22: and no function of its other sections")


def named_as_readelf_in_code(text, path):
    rows = symbols(path)
    addresses = every_byte(path)
    code = {name: row for name, row in rows.items() if row[0] in addresses}
    want = [next((name for name, (start, size) in code.items() if start <= a < start + size and name != "absolute_one"), "??") for a in addresses]
    equal(names([path], addresses), want, text)
    equal(names([path], range(0, 64)), ["??"] * 64, "22: per-CPU symbols are no code")


LAYOUTS = {
    "program at an unusual address": ["-no-pie", "-fno-pic", "-Wl,-Ttext-segment=0x7000000"],
    "several executable segments": ["-shared", "-fPIC", "-Wl,-z,separate-code", "-Wl,--section-start=.far=0x900000"],
    "one segment": ["-shared", "-fPIC", "-Wl,-z,noseparate-code"], "lld's offsets": ["-shared", "-fPIC", "-fuse-ld=lld"],
    "a shared object that begins far from 0": ["-shared", "-fPIC", "-Wl,-Ttext-segment=0x40000000"],
    "beyond 4 GiB": ["-shared", "-fPIC", "-Wl,-Ttext-segment=0x7f0000000000"],
    "32 bit": ["-m32", "-shared", "-fPIC"],
}


def case_23_addresses():
    for text, words in LAYOUTS.items():
        if "-fuse-ld=lld" in words and not has("ld.lld"):
            continue
        path = build("layout", "gcc", "-g", "-O2", "-nostdlib", "-Wl,-e,whole_entry", *words, "whole_a.c", "whole_b.c")
        agrees("23 %s" % text, path)


def case_names_of_any_kind():
    """Long names, bytes that are no UTF-8, and what looks like a mapping symbol and is none."""
    long_name = "_Z" + "N" + "9namespace" * 300 + "1fE" + "v"
    strange = {"long": long_name, "bytes": "caf\xe9", "swift": "$s4main3fooyyF"}
    text = ".text\n" + "".join('.globl "%s"\n.type "%s",@function\n"%s": .skip 16,0x90\n.size "%s",16\n' % ((name,) * 4) for name in strange.values())
    open(path_of("strange.s"), "w", encoding="latin-1").write(text)
    path = build("strange.so", "gcc", "-shared", "-nostdlib", path_of("strange.s"))
    start, _ = sections(path)[".text"]
    got = names([path], [start, start + 16, start + 32])
    check(got[0] == "namespace::" * 300 + "f" and got[2] == strange["swift"] and got[1].startswith("caf") and len(got[1]) == 4,
          "names of 3 KB, of no UTF-8, and beginning with a dollar", got)


def main():
    note("tools: " + subprocess.run([agree.LLVM, "--version"], capture_output=True, text=True).stdout.split("\n")[0])
    os.makedirs(WORK, exist_ok=True)
    cases = [value for name, value in sorted(globals().items()) if name.startswith("case_")]

    run(*cases)


if __name__ == "__main__":
    for program in agree.LLVM, "readelf", "c++filt", "cc", "gcc", "g++", "objcopy", "objdump", "xz":
        if not shutil.which(program):
            print("1..0 # SKIP comparing needs " + program)
            sys.exit(0)
    main()

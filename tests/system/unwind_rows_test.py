# SPDX-License-Identifier: Apache-2.0
"""The unwind rows of whole files, as tests/tools/print_rows.c makes them, against what llvm-dwarfdump and
readelf say of the same files: every address of all code has the same rule, or a rule that says it is unknown
where the truth cannot be put into one.

ROWS_FILES="PATH…" chooses the files."""
import bisect
import glob
import os
import re
import subprocess
import sys

sys.path.insert(0, "tests/tools")
from harness import BUILD, WORK, check, note, run, skip  # noqa: E402
from readelf_rows import readelf_rows  # noqa: E402

PRINT = os.path.join(WORK, "print_rows")
FILES = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
         "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib/x86_64-linux-gnu/libgcc_s.so.1", "/usr/bin/python3",
         "/usr/bin/git", "/usr/bin/node", *sorted(glob.glob("/usr/lib/gcc/x86_64-linux-gnu/*/cc1")),
         *sorted(glob.glob("/usr/lib/jvm/*/lib/server/libjvm.so"))[:1],
         *sorted(glob.glob(os.path.expanduser("~/.cargo/bin/rustc")))]
REGISTERS = ["RAX", "RDX", "RCX", "RBX", "RSI", "RDI", "RBP", "RSP"] + ["R%d" % n for n in range(8, 16)] + ["RIP"]
NONE = ("none", 0, 0, 0, "same", 0, "at_cfa", 0, 0, 0)
KEPT_UNDEFINED = 255
SIGNAL, GUESSED = 1 << 0, 1 << 2  # UNWIND_RULE_…
STACK_STARTS_MAX = 2  # glibc's __start_context and the byte before it, by which its caller is looked up
LANDINGS_MAX = 100  # of libgcc's few functions that leave by __builtin_eh_return, linked into a file
END = ("end", *NONE[1:])


def build_printer():
    parts = [os.path.join(BUILD, name) for name in ("tests/tools/print_rows.o", "testable-agent.a")]
    subprocess.run(["make", "-s", "BUILD=" + BUILD, *parts], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cc", "-pie", "-pthread", *parts, "-lz", "-lelf", "-lnettle", "-o", PRINT], check=True)


def lines_of(*command):
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    yield from process.stdout
    process.wait()


def is_landing(ours, truth):
    """The last instructions of code that throws return to a landing pad, not behind a call: that is in no table."""
    return ours[8] & SIGNAL and not truth[8] & SIGNAL and ours[:8] == truth[:8]


def our_rows(path):
    """Starts, and rules from there on; and the pages that have none."""
    starts, rules, without = [], [], []
    for line in lines_of(PRINT, path):
        fields = line.split()
        if fields[1] == "page":
            without.append((int(fields[0], 16), line))
            fields[1:] = map(str, NONE)
        starts.append(int(fields[0], 16))
        # Where no table says anything, code is followed: only that tables say nothing there is of interest here.
        if len(fields) > 9 and int(fields[9]) & GUESSED:
            fields[1:] = map(str, NONE)
        rules.append((fields[1], *map(int, fields[2:5]), fields[5], int(fields[6]), fields[7], *map(int, fields[8:])))
    return starts, rules, without


# --- what llvm-dwarfdump says, put into a rule by the words of unwind_rows.h ---

def place(text):
    """(register number or "CFA", offset) of REGISTER+n, or None."""
    found = re.fullmatch(r"(?:DW_OP_b?reg\w+ )?(CFA|R[A-Z0-9]+)([+-]\d+)?", text)
    if not found or (found[1] != "CFA" and found[1] not in REGISTERS):
        return None
    return found[1] if found[1] == "CFA" else REGISTERS.index(found[1]), int(found[2] or 0)


def fits(number, bits):
    return -(1 << bits - 1) <= number < 1 << bits - 1


def cfa_of(text):
    """(kind, register, offset, add) or None."""
    operations = text.split(", ")
    first = place(operations[0])
    if re.fullmatch(r"DW_OP_breg7 RSP\+8, DW_OP_breg16 RIP\+0, DW_OP_lit15, DW_OP_and, DW_OP_lit\d+, DW_OP_ge, "
                    r"DW_OP_lit3, DW_OP_shl, DW_OP_plus", text):
        return "plt", 0, int(operations[4][len("DW_OP_lit"):]), 0
    if not first or first[0] == "CFA" or first[0] > 15 or not fits(first[1], 32):
        return None
    if len(operations) == 1:
        return "register", *first, 0
    if operations[1] != "DW_OP_deref" or len(operations) > 3:
        return None
    add = re.fullmatch(r"DW_OP_plus_uconst 0x([0-9a-f]+)", operations[2]) if len(operations) == 3 else None
    add = int(add[1], 16) if add else 0
    if (len(operations) == 3 and not add) or not fits(add, 16):
        return None
    return "deref", *first, add


def from_cfa(saved, cfa):
    """What is saved at CFA + n: n, else None."""
    at = place(saved[1:-1]) if saved.startswith("[") else None
    if at and cfa[0] == "register" and at[0] == cfa[1]:
        at = "CFA", at[1] - cfa[2]
    return at[1] if at and at[0] == "CFA" and fits(at[1], 16) else None


def rule_of(text, is_signal):
    cfa_text, _, rest = text[len("CFA="):].partition(": ")
    saved = dict(part.split("=", 1) for part in re.split(r", (?=[A-Z0-9]+=)", rest) if part)
    cfa, came = cfa_of(cfa_text), saved.get("RIP", "unspecified")
    if came == "undefined":
        return END
    flags = 1 if is_signal else 0
    if is_signal and cfa and cfa[0] == "deref" and cfa[1] == 7 and not cfa[3]:
        offsets = dict(RDI=104, RSI=112, RBP=120, RBX=128, RDX=136, RAX=144, RCX=152, RSP=160, RIP=168,
                       **{"R%d" % n: 40 + 8 * (n - 8) for n in range(8, 16)})
        context = cfa[2] - 160
        if all(saved.get(name) == "[DW_OP_breg7 RSP%+d]" % (context + offset) for name, offset in offsets.items()):
            return "signal", 0, context, 0, "undefined", 0, "at_cfa", 0, flags, 0
    if not cfa or "RSP" in saved:
        return NONE
    if from_cfa(came, cfa) == -8:
        ra = "at_cfa", -8
    elif came in REGISTERS[:16]:
        ra = "in_register", REGISTERS.index(came)
    else:
        return NONE
    fp = saved.get("RBP", "same")
    at = place(fp[1:-1]) if fp.startswith("[") else None
    if fp in ("same", "RBP"):
        fp = "same", 0
    elif from_cfa(fp, cfa) is not None:
        fp = "at_cfa", from_cfa(fp, cfa)
    elif at and at[0] == 6 and fits(at[1], 16):
        fp = "at_fp", at[1]
    else:
        fp = "undefined", 0
    kept = saved.get("RBX", "same")
    if kept in ("same", "RBX"):
        kept = 0
    else:
        kept = from_cfa(kept, cfa)
        kept = -kept // 8 if kept and kept % 8 == 0 and -8 * KEPT_UNDEFINED < kept < 0 else KEPT_UNDEFINED
    return *cfa, *fp, *ra, flags, kept


def llvm_rows(path, counts):
    """Starts, and rules from there on, NONE between functions; and [start, end) of each FDE."""
    ranges, rows, common, rules = [], {}, {}, {}
    is_signal, current = False, None
    for line in lines_of("llvm-dwarfdump-19", "--eh-frame", "--debug-frame", path):
        if line.startswith("  0x"):
            address, _, text = line.strip().partition(": ")
            key = text, is_signal
            if key not in rules:
                rules[key] = rule_of(text, is_signal)
            current.append((int(address, 16), rules[key]))
            if current[-1][1][0] == "none":
                counts[re.sub(r"[+-]\d+", "+n", text)] = counts.get(re.sub(r"[+-]\d+", "+n", text), 0) + 1
        elif " CIE" in line and line[0] != " ":
            cie = int(line.split()[0], 16)
            current = []
        elif line.startswith("  Augmentation:"):
            common[cie] = "S" in line.split('"')[1]
        elif " FDE cie=" in line:
            is_signal = common[int(re.search(r"cie=([0-9a-f]+)", line)[1], 16)]
            start, end = (int(part, 16) for part in re.search(r"pc=([0-9a-f]+)\.\.\.([0-9a-f]+)", line).groups())
            if end > start:
                ranges.append((start, end))
            current = rows.setdefault((start, end), [])
    starts, out, at = [], [], 0
    ranges.sort()
    for i, (start, end) in enumerate(ranges):
        if i + 1 < len(ranges):
            end = min(end, ranges[i + 1][0])
        if start > at:
            starts.append(at), out.append(NONE)
        for address, rule in rows[ranges[i]]:
            if address < end:
                starts.append(address), out.append(rule)
        at = end
    starts.append(at), out.append(NONE)
    return starts, out, ranges


def compare(path, least):
    """Both as functions of the address; each stretch of code on which neither changes is compared once."""
    counts = {}
    starts, rules, without = our_rows(path)
    truth_starts, truth, ranges = llvm_rows(path, counts)
    breaks = sorted(set(starts) | set(at for at in truth_starts if starts[0] <= at <= starts[-1]))
    wrong, landings, starts_of_stacks, i, k = [], 0, [], -1, bisect.bisect_right(truth_starts, starts[0]) - 1
    for at in breaks:
        while i + 1 < len(starts) and starts[i + 1] <= at:
            i += 1
        while k + 1 < len(truth_starts) and truth_starts[k + 1] <= at:
            k += 1
        if is_landing(rules[i], truth[k]):
            landings += 1
        elif rules[i] == END and truth[k] != END and len(starts_of_stacks) < STACK_STARTS_MAX:
            starts_of_stacks.append(at)
        elif rules[i] != truth[k]:
            wrong.append("%x: %s, llvm-dwarfdump %s" % (at, rules[i], truth[k]))
    name = os.path.basename(path)
    failed = [line for _, line in without if "failure 0" not in line]
    check(not wrong and len(truth_starts) > least and ranges, "%s: %d stretches of code of %d functions are as llvm-dwarfdump "
          "has them" % (name, len(breaks), len(ranges)), "%d differ\n%s" % (len(wrong), "\n".join(wrong[:20])))
    check(landings <= LANDINGS_MAX, "%s: at most %d stretches are the end of code that throws" % (name, LANDINGS_MAX),
          "%d are" % landings)
    check(not failed, "%s: no page fails" % name, "\n".join(failed))
    for text, count in sorted(counts.items(), key=lambda item: -item[1])[:8]:
        note("%s: %d rows cannot be expressed: %s" % (name, count, text))
    return starts, rules


# --- the same again by readelf, which computes no expressions ---

def readelf_agrees(path, starts, rules, least):
    wrong, compared, expressions = [], 0, 0
    for at, row, is_whole in readelf_rows(lines_of("readelf", "--debug-dump=frames-interp", path)):
        if not is_whole:
            continue
        rule = rules[bisect.bisect_right(starts, at) - 1]
        compared += 1
        if "exp" in row.values() or "vexp" in row.values() or rule[0] in ("none", "signal"):
            expressions += 1
            continue
        cfa = re.fullmatch(r"(\w+)([+-]\d+)", row["CFA"])
        good = rule[0] == "end" and row["ra"] == "u" or (
            rule[0] == "register" and REGISTERS.index(cfa[1].upper()) == rule[1] and int(cfa[2]) == rule[2] and
            {"c": "at_cfa", "r": "in_register"}.get(row["ra"][0]) == rule[6] and
            (row["ra"][1:] == "%+d" % rule[7] if row["ra"][0] == "c" else True) and
            (row.get("rbp", "u") in ("u", "s") if rule[4] == "same" else row["rbp"] == "c%+d" % rule[5]))
        if not good:
            wrong.append("%x: %s, readelf %s" % (at, rule, row))
    check(not wrong and compared > least, "%s: %d rows are as readelf has them, %d more have expressions"
          % (os.path.basename(path), compared - expressions, expressions), "%d differ\n%s" % (len(wrong), "\n".join(wrong[:20])))


def compare_both(path, least=10):
    readelf_agrees(path, *compare(path, least), least)


def vdso():
    """The code that the kernel puts into every process, as a file."""
    with open("/proc/self/maps") as maps:
        start, end = next((int(part, 16) for part in line.split()[0].split("-")) for line in maps if "[vdso]" in line)
    path = os.path.join(WORK, "vdso")
    with open("/proc/self/mem", "rb") as memory, open(path, "wb") as out:
        memory.seek(start)
        out.write(memory.read(end - start))
    return path


def debug_frame_only(name, *flags):
    """A program whose own functions are described for debuggers only."""
    path = os.path.join(WORK, name)
    subprocess.run(["cc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", "-fno-asynchronous-unwind-tables", "-iquote", ".", *flags,
                    "common/error.c", "common/buffer.c", "common/options.c", "tests/programs/short_life.c", "-o", path], check=True)
    return path


def whole_files():
    build_printer()
    compare_both(vdso(), 2)
    compare_both(debug_frame_only("debug_frame"))
    compare_both(debug_frame_only("debug_frame_compressed", "-gz=zlib"))
    compare_both(debug_frame_only("debug_frame_static", "-static"))
    files = os.environ.get("ROWS_FILES", "").split() or FILES
    for path in files:
        if not os.path.exists(path):
            skip("%s is not here" % path)
            continue
        # Debian 12's node is a few rows around its library
        compare_both(path, 2 if os.path.getsize(path) < 65536 else 10)


run(whole_files)

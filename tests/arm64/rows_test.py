# SPDX-License-Identifier: Apache-2.0
"""python3 tests/arm64/rows_test.py "PRINT_ROWS…" FILE…: the unwind rows of arm64 files, as tests/tools/print_rows.c
makes them, against what llvm-dwarfdump and the cross readelf say of the same files: every address of all code has
the same rule. Prints TAP."""
import bisect
import os
import re
import subprocess
import sys

sys.path.insert(0, "tests/tools")
from readelf_rows import readelf_rows  # noqa: E402

READELF, LLVM = "aarch64-linux-gnu-readelf", "llvm-dwarfdump-19"
FP, KEPT, RETURN, SP = 29, 19, 30, 31
KEPT_UNDEFINED = 255
NONE = ("none", 0, 0, 0, "same", 0, "at_cfa", 0, 0, 0)
END = ("end", *NONE[1:])
FAR = ("far",)  # the frame is larger than a rule can say: no rule is the right one
results = []


def check(good, what, why=""):
    results.append(bool(good))
    print("%sok %d - %s" % ("" if good else "not ", len(results), what))
    if not good:
        print("".join("# %.200s\n" % line for line in str(why).splitlines()[:6]), end="", flush=True)


def lines_of(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, errors="replace").stdout.splitlines()


def our_rows(path):
    """Starts, and rules from there on; and the pages that failed."""
    starts, rules, failed = [], [], []
    for line in lines_of(*sys.argv[1].split(), path):
        fields = line.split()
        if fields[1] == "page":
            failed += [line] if fields[-1] != "0" else []
            fields[1:] = map(str, NONE)
        starts.append(int(fields[0], 16))
        rules.append((fields[1], *map(int, fields[2:5]), fields[5], int(fields[6]), fields[7], *map(int, fields[8:])))
    return starts, rules, failed


# --- what llvm-dwarfdump says, put into a rule by the words of unwind_rows.h ---

def register(name):
    return SP if name == "WSP" else int(name[1:])


def kept_of(offset):
    """As unwind_rows.h has it: what lies farther off is undefined."""
    if offset is None:
        return 0
    return -offset // 8 if -8 * KEPT_UNDEFINED < offset < 0 else KEPT_UNDEFINED


def rule_of(text, is_signal):
    """None: an expression, which this cannot read."""
    cfa, _, rest = text[len("CFA="):].partition(": ")
    saved = dict(part.split("=", 1) for part in re.split(r", (?=\w+=)", rest) if part)
    if saved.get("W30") == "undefined":
        return END
    cfa = re.fullmatch(r"(WSP|W\d+)([+-]\d+)?", cfa)
    places = {}
    for number in (FP, KEPT, RETURN):
        value = saved.get("W%d" % number, "same")
        value = None if value == "same" else value
        place = re.fullmatch(r"\[CFA([+-]\d+)?\]", value or "")
        places[number] = int(place[1] or 0) if place else None
        if value and not place:
            return None
    if not cfa or "WSP" in saved:
        return None
    base, offset = register(cfa[1]), int(cfa[2] or 0)
    # The kernel's, of which only the frame record is described: all registers lie behind a siginfo.
    if is_signal and (base, offset, places[FP], places[RETURN]) == (FP, 0, 0, 8):
        return "signal", 0, 128, 0, "undefined", 0, "at_cfa", 0, 1, 0
    if any((place or 0) < -1 << 15 for place in (places[FP], places[RETURN])):
        return FAR
    fp = ("same", 0) if places[FP] is None else ("at_cfa", places[FP])
    ra = ("in_register", RETURN) if places[RETURN] is None else ("at_cfa", places[RETURN])
    return "register", base, offset, 0, *fp, *ra, int(is_signal), kept_of(places[KEPT])


def llvm_rows(path):
    """{(start, end) of a function: [(address, rule)]} and how many rows have expressions or cannot be put
    into a rule."""
    functions, common, columns, expressions, far, is_signal, current = {}, {}, {}, 0, 0, False, []
    for line in lines_of(LLVM, "--eh-frame", "--debug-frame", path):
        if line.startswith("  0x"):
            address, _, text = line.strip().partition(": ")
            rule = rule_of(text, is_signal)
            expressions += rule is None
            far += rule is FAR
            # The return address is where no call puts it: nothing of that is to be believed.
            current.append((int(address, 16), NONE if rule is FAR or columns[cie_of] != RETURN else rule))
        elif " CIE" in line and line[0] != " ":
            cie = cie_of = int(line.split()[0], 16)
            columns.setdefault(cie, RETURN)
            current = []
        elif line.startswith("  Augmentation:"):
            common[cie] = "S" in line.split('"')[1]
        elif line.startswith("  Return address column:"):
            columns[cie] = int(line.split()[-1])
        elif " FDE cie=" in line:
            cie_of = int(re.search(r"cie=([0-9a-f]+)", line)[1], 16)
            is_signal = common[cie_of]
            start, end = (int(part, 16) for part in re.search(r"pc=([0-9a-f]+)\.\.\.([0-9a-f]+)", line).groups())
            current = functions.setdefault((start, end), []) if end > start else []
    return functions, expressions, far


def llvm_agrees(name, starts, rules, path, least):
    functions, expressions, far = llvm_rows(path)
    wrong, compared = [], 0
    for (start, end), rows in functions.items():
        for i, (address, rule) in enumerate(rows):
            stop = rows[i + 1][0] if i + 1 < len(rows) else end
            # Every row of ours that holds anywhere in this one of theirs.
            for k in range(bisect.bisect_right(starts, address) - 1, bisect.bisect_left(starts, stop)):
                compared += 1
                if rules[k] != rule and rule is not None:
                    wrong.append("%x: %s, llvm-dwarfdump %s" % (max(starts[k], address), rules[k], rule))
    check(not wrong and len(functions) > least and not expressions,
          "%s: %d rows of %d functions are as llvm-dwarfdump has them, %d of frames above 32 KiB have none"
          % (name, compared, len(functions), far),
          "%d differ, %d have expressions\n%s" % (len(wrong), expressions, "\n".join(wrong)))
    return sorted(functions)


# --- the same again by readelf ---

def readelf_agrees(name, starts, rules, path, least):
    wrong, compared = [], 0
    for at, row, _ in readelf_rows(lines_of(READELF, "--debug-dump=frames-interp", path)):
        rule = rules[bisect.bisect_right(starts, at) - 1]
        compared += 1
        cfa = re.fullmatch(r"(sp|x\d+)([+-]\d+)", row["CFA"])
        if rule == NONE and ("ra" not in row or int(cfa[2]) > 1 << 15):
            continue  # as above
        ra, fp, kept = (row.get(column, "u") for column in ("ra", "x29", "x19"))
        good = rule[0] in ("end", "signal") or (
            rule[0] == "register" and (SP if cfa[1] == "sp" else int(cfa[1][1:]), int(cfa[2])) == rule[1:3] and
            (ra == "c%+d" % rule[7] if rule[6] == "at_cfa" else ra in "us") and
            (fp == "c%+d" % rule[5] if rule[4] == "at_cfa" else fp in "us") and
            (rule[9] == kept_of(int(kept[1:])) if kept[0] == "c" else kept in "us" and not rule[9]))
        if not good:
            wrong.append("%x: %s, readelf %s" % (at, rule, row))
    check(not wrong and compared > least, "%s: %d rows are as readelf has them" % (name, compared),
          "%d differ\n%s" % (len(wrong), "\n".join(wrong)))


# --- code that nobody describes: the table of calls into other files ---

def plt_agrees(name, starts, rules, path, functions):
    expected, wrong = {}, []
    for line in lines_of("aarch64-linux-gnu-objdump", "-d", "-j", ".plt", "--no-show-raw-insn", path):
        found = re.match(r" +([0-9a-f]+):\t(\S+) *\t?(.*)", line)
        # A table's other stub, for thread-local variables, uses x2 and x3.
        if found and found[2] in ("bti", "stp", "adrp", "ldr", "add", "br") and re.match("c|(x16|x17)\\b", found[3]):
            expected[int(found[1], 16)] = found[2]
    pushed = 0
    for at, name_of in sorted(expected.items()):
        rule = rules[bisect.bisect_right(starts, at) - 1]
        if rule != ("register", SP, pushed, 0, "same", 0, "in_register", RETURN, 0, 0):
            wrong.append("%x: %s %s" % (at, name_of, rule))
        pushed = 16 if name_of == "stp" else 0 if name_of == "br" else pushed
    if expected:
        check(not wrong, "%s: %d instructions of .plt have the rules that they bring about" % (name, len(expected)),
              "\n".join(wrong))
    # Anything else that is given a rule has a function around it.
    last = bisect.bisect_left(starts, 1 << 63) - 1
    loose = 0
    for i, start in enumerate(starts):
        k = bisect.bisect_right(functions, (start, 1 << 63)) - 1
        inside = k >= 0 and functions[k][0] <= start < functions[k][1]
        if rules[i] != NONE and not inside and i < last and not any(start <= at + 8 and at < starts[i + 1]
                                                                  for at in expected):
            loose += 1
    check(loose == 0, "%s: outside of functions nothing has a rule" % name, "%d rows have" % loose)


for path in sys.argv[2:]:
    file = os.path.basename(path)
    our_starts, our_rules, failures = our_rows(path)
    check(not failures, "%s: no page fails" % file, "\n".join(failures))
    least_rows = 500 if file.startswith("libc.so") else 3
    bodies = llvm_agrees(file, our_starts, our_rules, path, least_rows)
    readelf_agrees(file, our_starts, our_rules, path, least_rows)
    plt_agrees(file, our_starts, our_rules, path, bodies)
print("1..%d" % len(results))
sys.exit(not all(results))

# SPDX-License-Identifier: Apache-2.0
"""Compiles sources and prints, for each code object, its table of lines and what this interpreter itself says
of each instruction: "C first_line TABLE", then a run of instructions a line, "FROM UNTIL LINE" (0: none).
For CPython 3.6 and newer. Arguments: files; none: the modules of this interpreter's library."""
import dis
import glob
import os
import sys
import types

MADE_UP = [
    "x = 1\n" + "\n" * 70000 + "y = 2\nz = (x +\n" + "\n" * 300 + "y)\n",
    "def f(a,\n      b):\n    return [c for c in\n            a\n" + "\n" * 200 + "            if c]\n",
    "x = [\n" + "1 + a,\n" * 400 + "]\n",
    "def f():\n    try:\n        with a as b, \\\n            c as d:\n            return b\n    finally:\n        g()\n",
    "async def f():\n    async for x in y:\n        await x\n    async with z as w:\n        yield w\n",
    "a = " + "+ ".join("b" * 200 + str(i) for i in range(500)) + "\n",
    "def f(): pass\n" * 300, "", "\n\n\n", "lambda: (yield)\n", "for x in y:\n    if x: continue\n    break\n",
]


def objects(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from objects(constant)


def lines_of(code):
    """The line of each unit of two bytes."""
    units = len(code.co_code) // 2
    if hasattr(code, "co_positions"):
        return [position[0] or 0 for position in code.co_positions()]
    lines = [0] * units
    if hasattr(code, "co_lines"):
        for begin, end, line in code.co_lines():
            lines[begin // 2:end // 2] = [line or 0] * ((end - begin) // 2)
        return lines
    starts = [start for start in dis.findlinestarts(code) if start[0] < 2 * units]
    for (begin, line), (end, _) in zip(starts, starts[1:] + [(2 * units, 0)]):
        lines[begin // 2:end // 2] = [line] * ((end - begin) // 2)
    if starts and starts[0][0]:  # findlinestarts() leaves out a line that is the first one
        lines[:starts[0][0] // 2] = [code.co_firstlineno] * (starts[0][0] // 2)
    return lines if starts else [code.co_firstlineno] * units


def show(code):
    table = code.co_linetable if hasattr(code, "co_linetable") else code.co_lnotab
    print("C", code.co_firstlineno, table.hex())
    lines = lines_of(code)
    begin = 0
    for at in range(1, len(lines) + 1):
        if at == len(lines) or lines[at] != lines[begin]:
            print(2 * begin, 2 * at, lines[begin])
            begin = at


def main():
    library = os.path.dirname(os.__file__)
    files = sys.argv[1:] or glob.glob(library + "/*.py") + glob.glob(library + "/asyncio/*.py")
    sources = list(MADE_UP)
    for path in files:
        with open(path, "rb") as file:
            sources.append(file.read())
    for source in sources:
        try:
            module = compile(source, "made-up", "exec")
        except (SyntaxError, ValueError, UnicodeDecodeError):
            continue
        for code in objects(module):
            show(code)


main()

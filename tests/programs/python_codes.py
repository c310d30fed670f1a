# SPDX-License-Identifier: Apache-2.0
"""Makes code objects of all kinds and prints "VERSION RUNTIME" (as sys.hexversion; the address of _PyRuntime, 0: not
known), then of each that there is, where it is and what it has: "ADDRESS ARGCOUNT KWONLY FLAGS FIRST_LINE NAME FILE TABLE NAME_AT FILE_AT TABLE_AT", NAME to TABLE in hexadecimal;
names as UTF-8 of at most 1024 bytes. Then "." and waits for the end of its input. For CPython 3.6 and newer."""
import gc
import os
import sys
import tempfile
import types
import zipfile

kept = []


def make(source, file):
    space = {"__name__": "made"}
    exec(compile(source, file, "exec"), space)
    kept.append(space)


def zipped():
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "packed.zip")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("packed_module.py", "class Packed:\n    def method(self):\n        return 1\n")
    sys.path.insert(0, path)
    import packed_module  # pylint: disable=import-error
    kept.append(packed_module)
    os.remove(path)
    os.rmdir(folder)


def text(value):
    out = b""
    for c in value:
        part = ("\ufffd" if 0xd800 <= ord(c) < 0xe000 or c == "\0" else c).encode()
        if len(out) + len(part) > 1024:
            break
        out += part
    return out.hex() or "-"


def objects(code, seen):
    if id(code) in seen:
        return
    seen[id(code)] = code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            objects(constant, seen)


make("def größe(): pass\nclass Ä:\n    def ß(self, *, k=1): return [x for x in k]\n", "latin-é.py")
make("def 函数(): return lambda: 1\n", "目录/文件.py")
make("def \U00010400\U00010401(a, b=2, *c): yield a\n", "\U0001f600.py")
make("def f(): pass\n", "lone-\udc80.py")
make("def " + "a" * 100000 + "(): pass\n", "x" * 100000)
make("def " + "長" * 5000 + "(): pass\n", "y" * 1023 + "é")
make("def g():\n" + "\n".join("    a = b + %d" % i for i in range(20000)) + "\n", "long-table")
make("async def h():\n    async with a: await b\n", "<string>")
make("x = 1\n", "")
zipped()
import asyncio  # pylint: disable=wrong-import-position,unused-import
import json  # pylint: disable=wrong-import-position,unused-import

found = {}
for thing in gc.get_objects():
    if isinstance(thing, types.FunctionType):
        objects(thing.__code__, found)
for number, space in enumerate(kept):
    code = compile("x = %d\n" % number, "<module %d>" % number, "exec")
    kept.append(code) if number == 0 else None
    objects(code, found)
try:
    import ctypes
    runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
except (ImportError, ValueError):
    runtime = 0
out = ["%d %d" % (sys.hexversion, runtime)]
for address, code in found.items():
    table = code.co_linetable if hasattr(code, "co_linetable") else code.co_lnotab
    name = getattr(code, "co_qualname", code.co_name)
    out.append("%d %d %d %d %d %s %s %s %d %d %d" % (
        address, code.co_argcount, code.co_kwonlyargcount, code.co_flags, code.co_firstlineno,
        text(name), text(code.co_filename), table.hex() or "-", id(name), id(code.co_filename), id(table)))
print("\n".join(out) + "\n.", flush=True)
sys.stdin.read()

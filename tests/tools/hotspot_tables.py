# SPDX-License-Identifier: Apache-2.0
"""python3 tests/tools/hotspot_tables.py PID FILE: what a running HotSpot's tables tell of what the agent's layout has, as a
small image of its memory, to be read at BASE with the tables' variables in front: tests/fuzz/corpus/hotspot_structs."""
import re
import struct
import subprocess
import sys

BASE = 0x10000
LAYOUT = "node-agent/runtimes/hotspot_layout.c"
SYMBOLS = "node-agent/file_parser/runtime_symbols.h"


class Process:
    def __init__(self, pid):
        with open(f"/proc/{pid}/maps") as maps:
            line = next(line for line in maps if line.rstrip().endswith("/libjvm.so")).split()
        self.base, self.path = int(line[0].split("-")[0], 16), line[5]
        self.memory = open(f"/proc/{pid}/mem", "rb", 0)
        symbols = subprocess.run(["readelf", "-W", "--dyn-syms", self.path], capture_output=True, text=True, check=True).stdout
        self.symbols = {m[2]: self.base + int(m[1], 16) for m in re.finditer(r": ([0-9a-f]+).* (gHotSpot\w+)", symbols)}

    def read(self, address, count):
        self.memory.seek(address)
        return self.memory.read(count)

    def word(self, address):
        return struct.unpack("<Q", self.read(address, 8))[0]

    def text(self, address):
        text = b""
        while address and b"\0" not in text:
            text += self.read(address + len(text), 1)
        return text.split(b"\0")[0]


def wanted():
    """What the layout asks for: (type, field), and (type, None) for its size."""
    with open(LAYOUT) as file:
        source = file.read()
    asked = {(m[1].encode(), m[2] and m[2].encode())
             for m in re.finditer(r'MEMBER\(\w+,\s*"([^"]+)",\s*(?:"([^"]+)"|NULL)', source)}
    spaces = {(b"CodeHeap", b"_memory"), (b"CodeHeap", b"_segmap"), (b"Abstract_VM_Version", b"_vm_major_version")}
    return asked | spaces | {(b"VirtualSpace", field) for field in (b"_low_boundary", b"_high_boundary", b"_low", b"_high")}


def main(pid, path):
    process, asked = Process(pid), wanted()
    with open(SYMBOLS) as file:
        names = re.findall(r'X\(\w+, "(\w+)"\)', file.read())
    values = {name: process.word(process.symbols[name]) for name in names}
    texts, rows, place = b"\0", {name: b"" for name in names[:4]}, {}

    def keep(text):
        nonlocal texts
        if text not in place:
            place[text] = len(texts)
            texts += text + b"\0"
        return place[text]

    at, stride = values[names[0]], values["gHotSpotVMStructEntryArrayStride"]
    kept = []
    while process.word(at):
        entry = struct.unpack("<QQQiiQQ", process.read(at, 48))
        key = (process.text(entry[0]), process.text(entry[1]))
        if key in asked:
            address = entry[6] - process.base if entry[3] else 0
            if key[1] == b"_vm_major_version":
                address = ("version", struct.unpack("<i", process.read(entry[6], 4))[0])
            kept.append((keep(key[0]), keep(key[1]), keep(process.text(entry[2])), entry[3], entry[5], address))
        at += stride
    types, at, stride = [], values[names[1]], values["gHotSpotVMTypeEntryArrayStride"]
    while process.word(at):
        name = process.text(process.word(at))
        if (name, None) in asked:
            types.append((keep(name), process.word(at + values["gHotSpotVMTypeEntrySizeOffset"])))
        at += stride
    structs_at = BASE + 8 * len(names) + 8
    types_at = structs_at + 48 * (len(kept) + 1)
    ends_at = types_at + 16 * (len(types) + 1)
    texts_at = ends_at + 32
    image = {name: values[name] for name in names}
    image.update(zip(names[:4], (structs_at, types_at, ends_at, ends_at)))
    image["gHotSpotVMTypeEntryArrayStride"], image["gHotSpotVMTypeEntryTypeNameOffset"] = 16, 0
    image["gHotSpotVMTypeEntrySizeOffset"] = 8
    out, version = b"".join(struct.pack("<Q", image[name]) for name in names), 0
    for row in kept:
        if isinstance(row[5], tuple):
            version = row[5][1]
    out += struct.pack("<Q", version)
    for row in kept:
        address = BASE + 8 * len(names) if isinstance(row[5], tuple) else row[5]
        out += struct.pack("<QQQiiQQ", texts_at + row[0], texts_at + row[1], texts_at + row[2], row[3], 0, row[4], address)
    out += bytes(48) + b"".join(struct.pack("<QQ", texts_at + name, size) for name, size in types) + bytes(16) + bytes(32)
    with open(path, "wb") as file:
        file.write(out + texts)
    print(f"{path}: {len(kept)} fields, {len(types)} sizes, {len(out + texts)} bytes")


main(int(sys.argv[1]), sys.argv[2])

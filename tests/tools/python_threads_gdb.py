# SPDX-License-Identifier: Apache-2.0
"""Inside gdb, attached to a process: what each of its threads has at the places near its thread pointer that PLACES
names ("at,in at,in", in -1: the word itself). One JSON object a thread, then one with the word at CURRENT."""
import json
import os
import struct

import gdb

def word(address):
    return struct.unpack("<Q", gdb.selected_inferior().read_memory(address, 8).tobytes())[0]


def at(pointer, place):
    offset, inner = place
    return word(pointer + offset) if inner < 0 else word(word(pointer + offset) + inner)


def threads(out):
    places = [tuple(int(part) for part in place.split(",")) for place in os.environ["PLACES"].split()]
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        pointer = int(gdb.parse_and_eval("(unsigned long)$fs_base"))
        found = {"tid": thread.ptid[1], "places": [at(pointer, place) for place in places]}
        out.write(json.dumps(found) + "\n")
    current = int(os.environ["CURRENT"])
    out.write(json.dumps({"current": word(current) if current else 0}) + "\n")


gdb.execute("set pagination off")
with open(os.environ["OUT"], "w") as file:
    threads(file)
gdb.execute("detach")

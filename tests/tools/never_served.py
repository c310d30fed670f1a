# SPDX-License-Identifier: Apache-2.0
"""python3 never_served.py FOLDER [FILE]: a FUSE file system of user 65534, mounted as fusermount3 does, that goes
silent. `data` may be mapped by everybody, no page of it is ever served. `program` has FILE's bytes, and `later`;
who opens them as root, or looks for `gone`, waits for ever. Until it ends: then all who wait get an error."""
import ctypes
import os
import stat
import struct
import sys

INIT, LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, FLUSH, OPENDIR, INTERRUPT, RELEASEDIR, BATCH_FORGET, STATFS = \
    26, 1, 2, 3, 14, 15, 18, 25, 27, 36, 29, 42, 17
NOBODY = 65534
ENOENT, ENOSYS = 2, 38
NODES = {b"data": 2, b"program": 3}
SIZE = 64 << 20


def attributes(node, content):
    mode = stat.S_IFDIR | 0o755 if node == 1 else stat.S_IFREG | 0o755
    size = 0 if node == 1 else SIZE if node == 2 else len(content)
    return struct.pack("<QQQQQQIIIIIIIIII", node, size, size // 512, 1, 1, 1, 0, 0, 0, mode, 1, NOBODY, NOBODY, 0, 4096, 0)


def answer(operation, node, uid, body, content):
    """None: never."""
    if operation == INIT:
        major, minor, readahead, _ = struct.unpack_from("<IIII", body)
        return 0, struct.pack("<IIIIHHIIHHI28x", 7, min(minor, 31), readahead, 0, 16, 12, 1 << 16, 1, 16, 0, 0)
    if operation == LOOKUP:
        name = body.split(b"\0")[0]
        if name not in NODES:
            return (-ENOENT, b"") if uid else None
        return 0, struct.pack("<QQQQII", NODES[name], 0, 3600, 3600, 0, 0) + attributes(NODES[name], content)
    if operation == GETATTR:
        return 0, struct.pack("<QII", 3600, 0, 0) + attributes(node, content)
    if operation == OPEN and node == 3 and not uid:
        return None
    if operation in (OPEN, OPENDIR):
        return 0, struct.pack("<QII", 0, 0, 0)
    if operation == READ:
        _, offset, size = struct.unpack_from("<QQI", body)
        return (0, content[offset:offset + size]) if node == 3 else None
    if operation == STATFS and not uid:
        return None
    return (0, b"") if operation in (RELEASE, FLUSH, RELEASEDIR) else (-ENOSYS, b"")


def main(folder, content):
    fuse = os.open("/dev/fuse", os.O_RDWR)
    options = "fd=%d,rootmode=40000,user_id=%d,group_id=%d,allow_other" % (fuse, NOBODY, NOBODY)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"never_served", os.fsencode(folder), b"fuse", 2 | 4, options.encode()):  # MS_NOSUID, MS_NODEV
        sys.exit("mount: " + os.strerror(ctypes.get_errno()))
    print("ready", flush=True)
    while True:
        request = os.read(fuse, 1 << 20)
        _, operation, unique, node, uid = struct.unpack_from("<IIQQI", request)
        if operation in (FORGET, BATCH_FORGET, INTERRUPT):
            continue
        said = answer(operation, node, uid, request[40:], content)
        if said:
            os.write(fuse, struct.pack("<IiQ", 16 + len(said[1]), said[0], unique) + said[1])


main(sys.argv[1], open(sys.argv[2], "rb").read() if len(sys.argv) > 2 else b"")

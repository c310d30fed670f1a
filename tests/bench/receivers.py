# SPDX-License-Identifier: Apache-2.0
"""What profilers send their reports to: OTLP over HTTP as we speak it, and over gRPC as others do. Both keep
the bodies as they came over the wire, with the time."""
import gzip
import socket
import struct
import threading
import time

from post_server import PostServer


class Receiver:
    """reports: [(monotonic time, bytes on the wire, message)]"""

    def __init__(self):
        self.reports = []

    def keep(self, wire, is_gzip):
        self.reports.append((time.monotonic(), len(wire), gzip.decompress(wire) if is_gzip else wire))


class HttpReceiver(Receiver):
    def __init__(self):
        super().__init__()
        self.url = PostServer(self.take).url

    def take(self, handler, body):
        if handler.path.endswith("/profiles"):
            self.keep(body, body[:2] == b"\x1f\x8b")
        handler.send_response(200)
        handler.send_header("Content-Length", "0")
        handler.end_headers()


# HTTP/2 frames (RFC 9113, section 6).
DATA, HEADERS, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 4, 6, 8
END_STREAM, END_HEADERS, PADDED, ACK = 0x1, 0x4, 0x8, 0x1


def h2_frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def h2_header(name, value):
    """A literal header field, not indexed (RFC 7541, section 6.2.2)."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


class GrpcReceiver(Receiver):
    """As much of HTTP/2 and gRPC as one client with unary calls needs; every call is answered with an empty message."""

    def __init__(self):
        super().__init__()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        stream, bodies = connection.makefile("rb"), {}
        try:
            stream.read(24)  # the preface
            # SETTINGS_INITIAL_WINDOW_SIZE, and the connection's own window
            connection.sendall(h2_frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 1 << 30)) +
                               h2_frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30)))
            while True:
                head = stream.read(9)
                if len(head) < 9:
                    return
                kind, flags, number = struct.unpack(">BBI", head[3:])
                payload = stream.read(int.from_bytes(head[:3], "big"))
                self.take(connection, bodies, kind, flags, number, payload)
        except OSError:
            pass

    def take(self, connection, bodies, kind, flags, number, payload):
        if kind in (SETTINGS, PING) and not flags & ACK:
            connection.sendall(h2_frame(kind, ACK, 0, payload if kind == PING else b""))
        elif kind == DATA:
            if payload:
                connection.sendall(h2_frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", len(payload))))
            if flags & PADDED:
                payload = payload[1:len(payload) - payload[0]]
            bodies[number] = bodies.get(number, b"") + payload
            if flags & END_STREAM:
                self.answer(connection, number, bodies.pop(number))

    def answer(self, connection, number, body):
        is_gzip, length = struct.unpack(">BI", body[:5])
        self.keep(body[5:5 + length], is_gzip)
        content_type = h2_header(b"content-type", b"application/grpc")
        connection.sendall(h2_frame(HEADERS, END_HEADERS, number, b"\x88" + content_type) +
                           h2_frame(DATA, 0, number, bytes(5)) +
                           h2_frame(HEADERS, END_HEADERS | END_STREAM, number, h2_header(b"grpc-status", b"0")))

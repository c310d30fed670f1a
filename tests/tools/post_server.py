# SPDX-License-Identifier: Apache-2.0
"""A web server of the test's own for what is posted or put to it."""
import http.server
import socketserver
import threading


class PostServer:
    """take(handler, body) answers each request, at any time in a thread of its own."""

    def __init__(self, take):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                take(self, self.rfile.read(int(self.headers.get("Content-Length", 0))))

            do_PUT = do_POST

            def log_message(self, *_):
                pass

        class Threading(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True

        self.server = Threading(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

# SPDX-License-Identifier: Apache-2.0
"""Real programs and libraries at work until they are ended: python_loads.py LOAD. What is not of Python's own comes from
PyPI. For CPython 3.6 and newer; tests/tools/python_spy.py runs them."""
import collections
import concurrent.futures
import functools
import json
import os
import re
import runpy
import sqlite3
import ssl
import sys
import tempfile
import textwrap
import threading
import zipfile


def burn(n):
    total = 0
    for i in range(200 + n % 7):
        total += i * n
    return total


# --- of its own library ---

def work_json():
    json.loads(json.dumps([{"a": i, "b": [str(i)] * 3} for i in range(200)], indent=1))


def work_re():
    re.sub(r"(\w+)\.(\w+)", lambda m: m.group(2) + str(burn(len(m.group(1)))), "alpha.beta gamma.delta " * 30)
    re.purge()
    re.compile(r"(a|b)*c{2,5}[^x-z]+(?P<name>\d+)$")


def work_sqlite(base=sqlite3.connect(":memory:")):
    base.create_function("burn", 1, burn)
    base.execute("create table if not exists t (a integer, b text)")
    base.executemany("insert into t values (?, ?)", ((i, str(i)) for i in range(50)))
    base.execute("select sum(burn(a)) from t group by b").fetchall()
    base.execute("delete from t")


def work_ssl():
    for _ in range(3):
        context = ssl.create_default_context()
        one, other = ssl.MemoryBIO(), ssl.MemoryBIO()
        connection = context.wrap_bio(one, other, server_hostname="example.org")
        try:
            connection.do_handshake()
        except ssl.SSLWantReadError:
            burn(len(other.read()))


def traced(function):
    @functools.wraps(function)
    def wrapper(*arguments, **named):
        return function(*arguments, **named)
    return wrapper


class Base:
    def __init__(self, n):
        self.n = n

    @traced
    def inherited(self):
        return burn(self.n)

    @property
    def value(self):
        return [burn(i) for i in range(2)] + list(burn(i) for i in range(2))

    @classmethod
    def make(cls, n):
        return cls(n)

    @staticmethod
    def fixed():
        return {burn(i): (lambda x: burn(x))(i) for i in range(2)}


class Derived(Base):
    def inherited(self):
        return super().inherited() + sum(self.value) + len(self.fixed())

    def __getattr__(self, name):
        return burn(len(name))


def work_classes():
    derived = Derived.make(3)
    derived.inherited()
    derived.nothing
    point = collections.namedtuple("Point", "x y")(1, 2)
    point._replace(x=burn(point.y))
    sorted(range(5), key=lambda n: burn(n))
    functools.reduce(lambda a, b: a + burn(b), range(5))


def work_exec():
    names = {"burn": burn}
    exec("def made(n):\n    return burn(n) + \\\n        burn(n)\nfor i in range(9):\n    made(i)\n", names)
    exec(compile("def other(n):\n\n    return burn(n)\nfor i in range(9): other(i)\n", "<made of text>", "exec"), names)
    eval("[burn(i) for i in range(5)]", names)


def work_dataclass():
    if sys.version_info < (3, 7):
        return work_classes()
    import dataclasses
    made = dataclasses.make_dataclass("Made", [("a", int), ("b", int, dataclasses.field(default=3))])
    for i in range(50):
        dataclasses.asdict(dataclasses.replace(made(i), b=burn(i)))


def work_tracing():
    def tracer(frame, event, arg):
        burn(1)
        return tracer
    sys.settrace(tracer)
    for i in range(5):
        burn(i)
    sys.settrace(None)


def work_ctypes():
    import ctypes
    libc = ctypes.CDLL(None)
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
    array = (ctypes.c_int * 9)(*[burn(i) % 100 for i in range(9)])
    libc.qsort(array, 9, ctypes.sizeof(ctypes.c_int), kind(lambda a, b: burn(a[0]) * 0 + a[0] - b[0]))


def zipped():
    folder = tempfile.mkdtemp()
    with zipfile.ZipFile(os.path.join(folder, "packed.zip"), "w") as packed:
        packed.writestr("packed/__init__.py", "from .inner import run\n")
        packed.writestr("packed/inner.py", textwrap.dedent("""
            def run(n):
                total = 0
                for i in range(300):
                    total += i * n

                return total
            """))
        packed.writestr("__main__.py", "import packed\nwhile True:\n    packed.run(1)\n    packed.run(2)\n")
    runpy.run_path(os.path.join(folder, "packed.zip"), run_name="__main__")


def pool():
    with concurrent.futures.ThreadPoolExecutor(3) as executor:
        while True:
            list(executor.map(burn, range(500)))


def main_of_module():
    folder = tempfile.mkdtemp()
    os.makedirs(folder + "/package")
    with open(folder + "/package/__main__.py", "w") as to:
        to.write("def leaf(n):\n    return sum(i * n for i in range(100))\n\nwhile True:\n    leaf(1)\n")
    os.chdir(folder)
    os.execv(sys.executable, [sys.executable, "-m", "package"])


SOURCE = "def leaf(n):\n    return sum([i * n for i in range(100)])\n\nwhile True:\n    leaf(1)\n"


def by_command():
    os.execv(sys.executable, [sys.executable, "-c", SOURCE])


def by_stdin():
    read, write = os.pipe()
    os.write(write, SOURCE.encode())
    os.close(write)
    os.dup2(read, 0)
    os.execv(sys.executable, [sys.executable])


# --- of PyPI ---

def flask():
    import flask as library
    app = library.Flask("app")

    @app.route("/<int:n>")
    def index(n):
        return library.jsonify(value=burn(n))

    client = app.test_client()
    while True:
        assert client.get("/7").status_code == 200


def django():
    from django.conf import settings
    settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="x", DEBUG=False)
    import django as library
    library.setup()
    from django.http import HttpResponse
    from django.test import Client
    from django.urls import path

    def view(request):
        return HttpResponse(str(burn(3)))

    globals()["urlpatterns"] = [path("index", view)]
    client = Client()
    while True:
        assert client.get("/index").status_code == 200


def jinja():
    import jinja2
    environment = jinja2.Environment(loader=jinja2.DictLoader({
        "base": "{% macro row(x) %}<td>{{ burn(x) }}</td>{% endmacro %}<p>{% block body %}{% endblock %}",
        "page": "{% extends 'base' %}\n{% block body %}\n{% for i in items %}\n<li>{{ burn(i)|string|upper }}</li>\n{% endfor %}\n{% endblock %}"}))
    while True:
        environment.get_template("page").render(items=range(50), burn=burn)


def numpy():
    import numpy as np
    numbers = np.random.rand(300, 300)
    while True:
        np.vectorize(burn)(np.arange(50))
        np.linalg.svd(numbers[:60, :60])
        np.apply_along_axis(lambda row: row.sum() + burn(1), 1, numbers[:50])
        numbers @ numbers


def pandas():
    import pandas as pd
    frame = pd.DataFrame({"a": [i % 5 for i in range(300)], "b": range(300)})
    while True:
        frame.groupby("a")["b"].apply(lambda group: group.sum() + burn(1))
        frame.apply(lambda row: burn(int(row["b"])), axis=1)
        frame.to_csv()


def pytest():
    import pytest as library
    folder = tempfile.mkdtemp()
    with open(folder + "/test_it.py", "w") as to:
        to.write("import pytest\n\n\ndef burn(n):\n    return sum(i * n for i in range(3000))\n\n\n"
                 "@pytest.mark.parametrize('n', range(300))\ndef test_burn(n):\n    assert burn(n) == sum(i * n for i in range(3000))\n")
    sys.stdout = open(os.devnull, "w")
    while True:
        library.main(["-q", "-p", "no:cacheprovider", folder])


def ask(port):
    import http.client
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
            while True:
                connection.request("GET", "/")
                connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            pass


def asker(port):
    """A process that asks, and ends with this one."""
    parent = os.getpid()
    if os.fork() == 0:
        def watch():
            import time
            while os.getppid() == parent:
                time.sleep(1)
            os._exit(0)
        threading.Thread(target=watch).start()
        ask(port)


def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(burn(5)).encode()]


def gunicorn():
    import socket
    from gunicorn.app.base import BaseApplication
    from gunicorn.workers.sync import SyncWorker
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    asker(port)

    class Application(BaseApplication):
        def load_config(self):
            self.cfg.set("bind", "127.0.0.1:%d" % port)
            self.cfg.set("loglevel", "critical")

        def load(self):
            return application
    app = Application()
    # The worker in this process: no fork, so that it can be told which process is meant.
    from gunicorn import glogging, sock
    log = glogging.Logger(app.cfg)
    worker = SyncWorker(1, os.getppid(), sock.create_sockets(app.cfg, log), app, 1e9, app.cfg, log)
    worker.init_process()


async def asgi(scope, receive, send):
    if scope["type"] != "http":
        return
    await send({"type": "http.response.start", "status": 200, "headers": [[b"content-length", b"2"]]})
    burn(5)
    await send({"type": "http.response.body", "body": b"ok"})


def uvicorn():
    import socket
    import uvicorn as library
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    asker(port)
    library.run(asgi, host="127.0.0.1", port=port, log_level="critical")


def forever(work):
    while True:
        work()


LOADS = {name[5:]: functools.partial(forever, work) for name, work in globals().copy().items() if name.startswith("work_")}
LOADS.update({work.__name__: work for work in (zipped, pool, main_of_module, by_command, by_stdin, flask, django, jinja, numpy,
                                               pandas, pytest, gunicorn, uvicorn)})

if __name__ == "__main__":
    if sys.argv[1] == "list":
        print(" ".join(LOADS))
    else:
        LOADS[sys.argv[1]]()

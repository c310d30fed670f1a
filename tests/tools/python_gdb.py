# SPDX-License-Identifier: Apache-2.0
"""Runs inside gdb, attached to a CPython that has debug information: where its threads have their frames, and at every
SIGSTOP the frames of the thread that got it, all by the types that its own compiler wrote down.

    gdb -nx -q -batch -x tests/tools/python_gdb.py
        PYTHON_PID      process to attach to
        PYTHON_OUT      file of lines
        PYTHON_STOPS    how many stops; then the process is killed. 0: it goes on at once, without gdb
        PYTHON_DEBUG    folder of debug information that is in files of its own; may be left out

The first line is {"ready": true, "place": {member of struct runtime_place: number}, "threads": {tid: frames}}, the
last only without stops; then {"time_ns" (after the stop),
"tid", "pc", "frames": [[code object, bytes of bytecode or null, is entry, name]…] innermost first}; at the end
{"exit": "…"}.
"""
import json
import os
import re
import subprocess
import time

import gdb

FRAMES_MAX = 5000
GLIBC_SPECIFIC = 0x310  # struct pthread.specific_1stblock, x86-64
SETTINGS = """
set pagination off
set confirm off
set width 0
set debuginfod enabled off
set print inferior-events off
set print thread-events off
handle all nostop noprint pass
handle SIGSTOP stop print nopass
"""
NONE = 0xffff
TAGS = 7  # of a _PyStackRef, 3.14
INSTR_IS_POINTER, INSTR_IS_UNITS, ENTRY_IS_SHIM = 1, 2, 4


def fields(type_):
    type_ = type_.strip_typedefs()
    return {field.name: field for field in type_.fields()}


def offset(type_, name):
    return fields(type_)[name].bitpos // 8


def evaluate(text):
    return gdb.parse_and_eval(text)


def thread_pointer():
    return int(evaluate("$fs_base"))


def thread_local(name):
    """From the thread pointer on. Where gdb has no libthread_db for that C library: of the program itself, whose block
    lies below the thread pointer."""
    try:
        return int(evaluate("&" + name)) - thread_pointer()
    except gdb.error:
        found = re.search(r"offset (0x[0-9a-f]+) in the thread-local storage", gdb.execute("info address " + name,
                                                                                           to_string=True))
    program = subprocess.run(["readelf", "-lW", "/proc/%s/exe" % os.environ["PYTHON_PID"]], capture_output=True,
                             text=True, check=True).stdout
    segment = next(line.split() for line in program.splitlines() if line.split()[:1] == ["TLS"])
    size, align = int(segment[5], 16), int(segment[-1], 16)
    return int(found.group(1), 16) - (size + align - 1) // align * align


class Interpreter:
    def __init__(self):
        self.version = self.read_version()
        self.runtime = evaluate("_PyRuntime") if self.version > 6 else None
        self.state_type = gdb.lookup_type("PyThreadState")
        self.code_type = gdb.lookup_type("PyCodeObject")
        names = fields(self.state_type)
        self.has_cframe = "cframe" in names and "frame" not in names
        self.is_old = "frame" in names  # 3.10 and before: PyFrameObject
        if self.is_old:
            self.frame_type = names["frame"].type.target()
        elif self.has_cframe:
            cframe = names["cframe"].type.target()
            self.frame_type = fields(cframe)["current_frame"].type.target()
        else:
            self.frame_type = names["current_frame"].type.target()
        self.frame_names = fields(self.frame_type)

    @staticmethod
    def read_version():
        if gdb.lookup_global_symbol("Py_Version"):
            return int(evaluate("Py_Version")) >> 16 & 0xff
        text = open("/proc/%s/maps" % os.environ["PYTHON_PID"]).read()
        if "libpython3." in text:
            return int(text.split("libpython3.")[1].split(".")[0].rstrip("dm"))
        return int(subprocess.run(["/proc/%s/exe" % os.environ["PYTHON_PID"], "-c", "import sys; print(sys.version_info[1])"],
                                  stdout=subprocess.PIPE, check=True).stdout)

    def member(self, *names):
        return next(name for name in names if name in self.frame_names)

    def layout(self):
        state, frame, code = self.state_type, self.frame_type, self.code_type
        layout = {"tstate_thread_id": offset(state, "thread_id"), "cframe_frame": NONE, "frame_entry": NONE,
                  "entry_value": 0, "code_bytes": 0}
        if self.has_cframe:
            layout["tstate_frame"] = offset(state, "cframe")
            layout["cframe_frame"] = offset(fields(state)["cframe"].type.target(), "current_frame")
        else:
            layout["tstate_frame"] = offset(state, "frame" if self.is_old else "current_frame")
        layout["frame_code"] = offset(frame, self.member("f_code", "f_executable"))
        layout["frame_previous"] = offset(frame, self.member("f_back", "previous"))
        layout["frame_instr"] = offset(frame, self.member("f_lasti", "prev_instr", "instr_ptr"))
        if self.is_old:
            layout["flags"] = INSTR_IS_UNITS if self.version == 10 else 0
        else:
            layout["flags"] = INSTR_IS_POINTER | (0 if "is_entry" in self.frame_names else ENTRY_IS_SHIM)
            layout["frame_entry"] = offset(frame, self.member("is_entry", "owner"))
            layout["entry_value"] = 1 if "is_entry" in self.frame_names else self.shim_owner()
            layout["code_bytes"] = offset(code, "co_code_adaptive")
        for name, member in (("argcount", "co_argcount"), ("kwonly", "co_kwonlyargcount"), ("flags", "co_flags"),
                             ("firstline", "co_firstlineno")):
            layout["code_" + name] = offset(code, member)
        members = fields(code)
        for name, wanted in (("name", ("co_qualname", "co_name")), ("filename", ("co_filename",)),
                             ("lines", ("co_linetable", "co_lnotab"))):
            layout["code_" + name] = offset(code, next(member for member in wanted if member in members))
        return layout

    def shim_owner(self):
        """The least owner of frames that are no function's."""
        return int(evaluate("FRAME_OWNED_BY_INTERPRETER" if self.version >= 14 else "FRAME_OWNED_BY_CSTACK"))

    def key(self):
        if self.version == 6:
            return int(evaluate("'Python/pystate.c'::autoTLSkey"))
        gil = self.runtime["gilstate"]
        key = gil["autoTSSkey"] if "autoTSSkey" in fields(gil.type) else self.runtime["autoTSSkey"]
        return int(key["_key"])

    def current(self):
        """Where the state is that has the lock; 0: each thread knows its own."""
        if self.version == 6:
            return int(evaluate("&_PyThreadState_Current"))
        gil = self.runtime["gilstate"]
        return int(gil["tstate_current"].address) if "tstate_current" in fields(gil.type) else 0

    def place(self):
        place = {"thread_id_minus_tp": 0, "current_at": self.current(), "thread_in": -1, "other_in": -1, "other_at": 0}
        if self.version < 15:
            place["thread_at"] = GLIBC_SPECIFIC + 16 * self.key() + 8
        else:
            place["thread_at"] = thread_local("_Py_tss_gilstate")
        if not place["current_at"]:
            place["other_at"] = place["thread_at"]
            place["thread_at"] = thread_local("_Py_tss_tstate")
        place.update(("layout." + name, value) for name, value in self.layout().items())
        return place

    def states(self):
        interpreter = self.runtime["interpreters"]["head"] if self.version > 6 else evaluate(
            "'Python/pystate.c'::interp_head")
        names = fields(interpreter.type.target())
        state = interpreter["tstate_head"] if "tstate_head" in names else interpreter["threads"]["head"]
        while int(state):
            yield state
            state = state["next"]

    def name(self, code):
        text = code["co_name"]
        ascii_type = gdb.lookup_type("PyASCIIObject")
        start = int(text) + ascii_type.sizeof
        length = int(text.cast(ascii_type.pointer())["length"])
        return bytes(gdb.selected_inferior().read_memory(start, length)).decode("latin1")

    def code(self, frame):
        code = frame[self.member("f_code", "f_executable")]
        if code.type.strip_typedefs().code == gdb.TYPE_CODE_UNION:
            code = gdb.Value(int(code["bits"]) & ~TAGS)
        return code.cast(self.code_type.pointer())

    def position(self, frame, code):
        if self.is_old:
            at = int(frame["f_lasti"]) * (2 if self.version == 10 else 1)
        else:
            start = int(code["co_code_adaptive"].address)
            at = int(frame[self.member("prev_instr", "instr_ptr")]) - start
        return at if at >= 0 else None

    def frames(self, state):
        frame = state["cframe"]["current_frame"] if self.has_cframe else state["frame" if self.is_old
                                                                             else "current_frame"]
        found = []
        shim = None if self.is_old or "is_entry" in self.frame_names else self.shim_owner()
        while int(frame) and len(found) < FRAMES_MAX:
            if shim is not None and int(frame["owner"]) >= shim:
                if found:
                    found[-1][2] = True
            else:
                code = self.code(frame)
                is_entry = True if self.is_old else shim is None and bool(int(frame["is_entry"]))
                found.append([int(code), self.position(frame, code), is_entry, self.name(code)])
            frame = frame[self.member("f_back", "previous")]
        return found


class Recorder:
    def __init__(self):
        self.out = open(os.environ["PYTHON_OUT"], "w")
        self.is_stop = self.is_over = False
        gdb.events.stop.connect(self.on_stop)
        gdb.events.exited.connect(self.on_exit)

    def on_stop(self, event):
        self.is_stop = isinstance(event, gdb.SignalEvent) and event.stop_signal == "SIGSTOP"

    def on_exit(self, event):
        self.is_over = True

    def write(self, value):
        self.out.write(json.dumps(value) + "\n")
        self.out.flush()

    def stop(self, interpreter):
        pointer = thread_pointer()
        own = [state for state in interpreter.states() if int(state["thread_id"]) == pointer]
        return {"time_ns": time.monotonic_ns(), "tid": gdb.selected_thread().ptid[1],
                "pc": gdb.newest_frame().pc(), "frames": interpreter.frames(own[0]) if own else []}

    def threads(self, interpreter):
        found = {}
        for thread in gdb.selected_inferior().threads():
            thread.switch()
            found[thread.ptid[1]] = self.stop(interpreter)["frames"]
        return found

    def run(self):
        for line in SETTINGS.strip().splitlines():
            gdb.execute(line, to_string=True)
        if os.environ.get("PYTHON_DEBUG"):
            gdb.execute("set debug-file-directory " + os.environ["PYTHON_DEBUG"])
        gdb.execute("attach %s" % os.environ["PYTHON_PID"], to_string=True)
        interpreter = Interpreter()
        left = int(os.environ["PYTHON_STOPS"])
        self.write({"ready": True, "place": interpreter.place(), "threads": {} if left else self.threads(interpreter)})
        if not left:
            gdb.execute("detach", to_string=True)
            return
        while left and not self.is_over:
            self.is_stop = False
            gdb.execute("continue", to_string=True)
            if self.is_stop:
                left -= 1
                self.write(self.stop(interpreter))
        self.write({"exit": "the process ended" if self.is_over else "enough stops"})
        if not self.is_over:
            gdb.execute("kill", to_string=True)


def main():
    recorder = Recorder()
    try:
        recorder.run()
    except Exception as error:  # noqa: BLE001
        recorder.write({"exit": "%s: %s" % (type(error).__name__, error)})


main()

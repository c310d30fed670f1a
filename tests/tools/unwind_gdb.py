# SPDX-License-Identifier: Apache-2.0
"""Runs inside gdb, attached to a process: at every SIGSTOP one of its threads gets, writes that thread's whole
stack as gdb unwinds it, one JSON object a line, and lets it go on without the signal.

    gdb -nx -q -batch -x tests/tools/unwind_gdb.py EXECUTABLE
        UNWIND_PID      process to attach to
        UNWIND_OUT      file of lines
        UNWIND_STOPS    how many stops; then the process is killed
        UNWIND_MAPPED   optional: files that the process maps by itself; gdb is told where they lie

The first line is {"ready": true}; then {"time_ns" (CLOCK_MONOTONIC, after the stop), "tid", "frames": [pc…] leaf
first without inlined ones and up to the first that lies in no code, "signal": indexes of trampolines, "end": why the
last one has no caller, "names": {pc: "module!function"} for those not given before, "code": [[start, end, file offset,
path]…] of the executable mappings when they have changed}; at the end {"exit": "…"}.
"""
import json
import os
import time

import gdb

FRAMES_MAX = 2000
NOT_REAL = (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME)
SETTINGS = """
set pagination off
set confirm off
set width 0
set backtrace past-main on
set backtrace past-entry on
set backtrace limit unlimited
set debug-file-directory /nonexistent
set auto-load libthread-db off
set debuginfod enabled off
set exec-file-mismatch off
set print inferior-events off
set print thread-events off
set detach-on-fork on
set follow-fork-mode parent
handle all nostop noprint pass
handle SIGSTOP stop print nopass
"""


class Recorder:
    def __init__(self):
        self.out = open(os.environ["UNWIND_OUT"], "w")
        self.named = set()
        self.code = self.code_text = None
        self.mapped = {}
        self.mapped_files = os.environ.get("UNWIND_MAPPED", "").split()
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

    def name(self, frame, pc):
        library = gdb.solib_name(pc) or gdb.current_progspace().filename or "?"
        return "%s!%s" % (os.path.basename(library), frame.name() or "?")

    def read_code(self, pid):
        """The executable mappings; None when they are as they were."""
        with open("/proc/%d/maps" % pid) as maps:
            lines = [line.split(None, 5) for line in maps if line[line.index(" ") + 3] == "x"]
        if lines == self.code_text:
            return None
        self.code_text = lines
        self.code = []
        for fields in lines:
            start, end = (int(address, 16) for address in fields[0].split("-"))
            self.code.append([start, end, int(fields[2], 16), fields[5].strip() if len(fields) > 5 else ""])
        return self.code

    def is_code(self, pc):
        return any(start <= pc < end for start, end, _, _ in self.code)

    def follow_mapped_files(self):
        """gdb knows what the dynamic linker tells it; this adds what the program maps itself."""
        present = {path: start - offset for start, _, offset, path in self.code if path in self.mapped_files}
        for path, start in list(self.mapped.items()):
            if present.get(path) != start:
                gdb.execute("remove-symbol-file " + path, to_string=True)
                del self.mapped[path]
        for path, start in present.items():
            if path not in self.mapped:
                gdb.execute("add-symbol-file %s -o %#x" % (path, start), to_string=True)
                self.mapped[path] = start

    def stack(self):
        frames, signals, names, end = [], [], {}, ""
        frame = gdb.newest_frame()
        try:
            while frame is not None and len(frames) < FRAMES_MAX:
                pc = frame.pc()
                if frames and not self.is_code(pc):
                    end = "not code: %#x" % pc
                    break
                if frame.type() not in NOT_REAL:
                    if frame.type() == gdb.SIGTRAMP_FRAME:
                        signals.append(len(frames))
                    frames.append(pc)
                    if pc not in self.named:
                        self.named.add(pc)
                        names["%x" % pc] = self.name(frame, pc)
                end = gdb.frame_stop_reason_string(frame.unwind_stop_reason())
                if frame.unwind_stop_reason() == gdb.FRAME_UNWIND_OUTERMOST:
                    end = "outermost"
                frame = frame.older()
        except gdb.error as error:
            end = "error: %s" % error
        return {"frames": frames, "signal": signals, "names": names, "end": end}

    def run(self):
        pid = int(os.environ["UNWIND_PID"])
        for line in SETTINGS.strip().splitlines():
            gdb.execute(line, to_string=True)
        gdb.execute("attach %d" % pid, to_string=True)
        self.write({"ready": True})
        left = int(os.environ["UNWIND_STOPS"])
        while left and not self.is_over:
            self.is_stop = False
            gdb.execute("continue", to_string=True)
            if self.is_stop:
                left -= 1
                now_ns = time.monotonic_ns()
                code = self.read_code(pid)
                self.follow_mapped_files()
                stop = dict(time_ns=now_ns, tid=gdb.selected_thread().ptid[1], **self.stack())
                if code is not None:
                    stop["code"] = code
                self.write(stop)
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

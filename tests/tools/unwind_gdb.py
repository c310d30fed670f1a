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
set displaced-stepping off
handle all nostop noprint pass
handle SIGSTOP stop print nopass
"""


# Go's ends of a stack (FuncFlag TOPFRAME, and what has left the goroutine for good); functions behind which only the
# goroutine's descriptor says where it goes on, and nothing is told here.
GO_TOP = {"runtime.goexit", "runtime.clone", "runtime.rt0_go", "runtime.mcall"}
GO_LOST = {"runtime.gogo"}
GO_VDSO = {"runtime.nanotime1", "runtime.walltime", "runtime.walltime1", "time.now"}
GO_LEFT = {"runtime.systemstack", "runtime.morestack"}
GO_SWITCH = GO_VDSO | GO_LEFT
GO_CALLS_C = {"runtime.asmcgocall", "runtime.cgocallback"}


def word_at(address):
    return int.from_bytes(bytes(gdb.selected_inferior().read_memory(address, 8)), "little")


def set_register(name, value):
    """Of the thread. After every assignment gdb may select another frame, whose registers lie in memory."""
    gdb.newest_frame().select()
    gdb.execute("set $%s = %d" % (name, value))


def running_goroutine(frame):
    """Also while its thread is on the system stack; 0: none."""
    g = word_at(int(frame.read_register("fs_base")) - 8)
    return g and int(gdb.Value(g).cast(gdb.lookup_type("runtime.g").pointer())["m"]["curg"])


def go_caller(frame, name, is_leaf):
    """(pc, sp, whether that frame itself counts): where a goroutine goes on whose function name has left its stack
    for the thread's, as the runtime notes it for its own tracebacks; None: the frame has an ordinary caller."""
    if name == "runtime.asmcgocall":
        at = int(frame.read_register("rsp"))
        g = word_at(at + 8)
        if is_leaf and g != running_goroutine(frame):
            return None  # it has yet to leave the goroutine's stack, or is back on it
        if not g:
            sp = word_at(at)
            return word_at(sp), sp + 8, True
    else:
        g = word_at(int(frame.read_register("fs_base")) - 8)
    descriptor = gdb.Value(g).cast(gdb.lookup_type("runtime.g").pointer())
    m = descriptor["m"]
    if name in GO_VDSO:
        return (int(m["vdsoPC"]), int(m["vdsoSP"]), True) if int(m["vdsoSP"]) else None
    if name == "runtime.cgocallback":
        # C code called it on the thread's stack; on the goroutine's it looks as if cgocall had.
        return int(frame.pc()), int(m["g0"]["sched"]["sp"]), False
    if name in GO_LEFT:
        descriptor = m["curg"]
        if not int(descriptor):
            return 0, 0, False  # the scheduler is at work: there is no goroutine any more
        stack = descriptor["stack"]
        if is_leaf and int(stack["lo"]) <= int(frame.read_register("rsp")) < int(stack["hi"]):
            return None
    # As if it had called systemstack_switch, or stood where it has called morestack.
    return int(descriptor["sched"]["pc"]), int(descriptor["sched"]["sp"]), name == "runtime.morestack"


class Recorder:
    def __init__(self):
        self.out = open(os.environ["UNWIND_OUT"], "w")
        self.named = set()
        self.code = self.code_text = None
        self.mapped = {}
        self.vdso = self.elsewhere = None
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
        """gdb knows what the dynamic linker tells it; this adds what the program maps itself, and the vDSO."""
        vdso = next((start for start, _, _, path in self.code if path == "[vdso]"), None)
        if self.vdso and vdso != self.vdso:  # after an exec
            gdb.execute("add-symbol-file-from-memory %#x" % vdso, to_string=True)
        self.vdso = vdso
        present = {path: start - offset for start, _, offset, path in self.code if path in self.mapped_files}
        for path, start in list(self.mapped.items()):
            if present.get(path) != start:
                gdb.execute("remove-symbol-file " + path, to_string=True)
                del self.mapped[path]
        for path, start in present.items():
            if path not in self.mapped:
                gdb.execute("add-symbol-file %s -o %#x" % (path, start), to_string=True)
                self.mapped[path] = start

    def add_frames(self, frame, stack):
        """Appends the frames from this one on; returns the frame behind which a goroutine goes on elsewhere."""
        while frame is not None and len(stack["frames"]) < FRAMES_MAX:
            pc, is_leaf = frame.pc(), not stack["frames"]
            if not is_leaf and not self.is_code(pc):
                stack["end"] = "not code: %#x" % pc
                return None
            if frame.type() not in NOT_REAL:
                name = frame.name()
                if frame.type() == gdb.SIGTRAMP_FRAME:
                    stack["signal"].append(len(stack["frames"]))
                stack["frames"].append(pc)
                if pc not in self.named:
                    self.named.add(pc)
                    stack["names"]["%x" % pc] = self.name(frame, pc)
                if not is_leaf and name in GO_TOP | GO_LOST:
                    stack["end"] = "outermost" if name in GO_TOP else "the goroutine's descriptor"
                    return None
                if name in GO_SWITCH or name == "runtime.asmcgocall" or not is_leaf and name in GO_CALLS_C:
                    self.elsewhere = go_caller(frame, name, is_leaf)
                    if self.elsewhere and not self.elsewhere[0]:
                        stack["end"] = "outermost"
                        return None
                    if self.elsewhere:
                        return frame
            stack["end"] = gdb.frame_stop_reason_string(frame.unwind_stop_reason())
            if frame.unwind_stop_reason() == gdb.FRAME_UNWIND_OUTERMOST:
                stack["end"] = "outermost"
            frame = frame.older()
        return None

    def add_elsewhere(self, stack, pc, sp, is_counted):
        """Frames as from these registers; gives back where those end on yet another stack."""
        set_register("rsp", sp)
        set_register("rip", pc)
        frame = gdb.newest_frame()
        return self.add_frames(frame if is_counted else frame.older(), stack)

    def stack(self):
        stack = {"frames": [], "signal": [], "names": {}, "end": ""}
        saved = None
        try:
            left = self.add_frames(gdb.newest_frame(), stack)
            while left is not None and len(stack["frames"]) < FRAMES_MAX:
                found = self.elsewhere
                if saved is None:
                    saved = [(r, int(gdb.newest_frame().read_register(r))) for r in ("rsp", "rip")]
                left = self.add_elsewhere(stack, *found)
        except gdb.error as error:
            stack["end"] = "error: %s" % error
        for register, value in saved or []:
            set_register(register, value)
        return stack

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

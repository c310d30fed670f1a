# SPDX-License-Identifier: Apache-2.0
"""gdb -nx -batch -x tests/tools/python_locks_gdb.py LIBRARY: what of CPython's _PyRuntime threads may wait at by the C
library's means, one "at PATH TYPE" a line, by debug information. A PyMutex is none: who waits for one does so at a
semaphore on its own stack."""
import gdb  # pylint: disable=import-error

WAITED_FOR = {"pthread_cond_t", "pthread_mutex_t", "pthread_rwlock_t", "pthread_once_t", "pthread_barrier_t", "sem_t", "mtx_t", "cnd_t"}


def look(kind, path):
    if str(kind) in WAITED_FOR:
        print("at %s %s" % (path, kind))
        return
    kind = kind.strip_typedefs()
    if kind.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
        for field in kind.fields():
            look(field.type, "%s.%s" % (path, field.name))
    elif kind.code == gdb.TYPE_CODE_ARRAY:
        look(kind.target(), path + "[]")


look(gdb.lookup_type("_PyRuntimeState"), "")

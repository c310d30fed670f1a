/* SPDX-License-Identifier: Apache-2.0 */
/* What a process runs, by its executable and the bytes of /proc/PID/cmdline: app.py, not python3.
 * Pure. */
#ifndef NODE_AGENT_PROCESSES_PROGRAM_NAME_H
#define NODE_AGENT_PROCESSES_PROGRAM_NAME_H

#include <stddef.h>

enum { PROGRAM_NAME_ROOM = 129 }; /* longer ones are cut, and end in "…" */

/* executable: its path, "" when unknown. The last argument is whole or left away. The base name of
 * the executable; of an interpreter's (interpreters.h) that of the script, the module, class or
 * jar, the command of a package manager ("npm run start"), "python3 -c" for code that has no name,
 * the first word of a title that the process gave itself. What cannot be printed is '?'. What
 * follows an option that is called like a secret is no name. The executable's where nothing says
 * it for sure. */
void program_name_write(const char *executable, const char *bytes, size_t length,
			char out[PROGRAM_NAME_ROOM]);

#endif

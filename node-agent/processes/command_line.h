/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of /proc/PID/cmdline → a line to show, and the name behind a comm that is cut; of
 * environ → a variable. Pure. */
#ifndef NODE_AGENT_PROCESSES_COMMAND_LINE_H
#define NODE_AGENT_PROCESSES_COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>

enum {
	COMMAND_LINE_ROOM = 513,  /* longer ones are cut, and end in "…" */
	COMMAND_LINE_READ = 4096, /* bytes of cmdline that are looked at */
	COMMAND_NAME_ROOM = 65,
};

/* Which part of command lines leaves the host: --command-lines. */
enum command_lines { COMMAND_LINES_FULL, COMMAND_LINES_NAME, COMMAND_LINES_OFF };

/* Arguments with a space between; what cannot be printed is '?'. NAME: the first one alone. What an
 * argument sets that is called like a secret (password, token, api-key …) is "***": --password=X,
 * --password X, PASSWORD=X, and X in scheme://user:X@. A guess: secrets do not belong there. */
void command_line_write(const char *bytes, size_t length, enum command_lines what,
			char out[COMMAND_LINE_ROOM]);

/* Whether what is called so (an option, a variable) is taken for a secret. */
bool command_line_is_secret(const char *name, size_t length);

/* The whole name of a process whose comm has the 15 bytes that the kernel keeps of one: the base
 * name of one of the first two arguments (an interpreter's second is the script) that begins with
 * it, cut to the room. False: comm is shorter, or none does. */
bool command_line_name(const char *bytes, size_t length, const char *comm,
		       char out[COMMAND_NAME_ROOM]);

/* The value of NAME= in an environment that may be cut, cut to the room itself. False: it has none,
 * or an empty one. */
bool environment_value(const char *bytes, size_t length, const char *name, char *out, size_t room);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What a program is called: its executable's path, command line, container, service, pod, user. */
#ifndef NODE_AGENT_PROCESSES_PROGRAM_INFO_H
#define NODE_AGENT_PROCESSES_PROGRAM_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "node-agent/processes/command_line.h"
#include "node-agent/processes/process_table.h"

struct program_info {
	struct process_info shown;
	struct process_lifetime lifetime;
	bool is_starting; /* it has an executable and no arguments yet: execve() is still at work */
	uint32_t references;
	char text[]; /* what shown and lifetime point into */
};

struct program_info_source { /* borrowed */
	struct process_key key;
	const struct program_info *inherited; /* of whom it has what cannot be read; NULL: nobody */
	const char *exec_path;                /* goes before an inherited path; NULL: none */
	bool is_execed;                       /* it has no command line of an inherited one */
	bool is_forked;                       /* it runs the inherited one's executable */
	unsigned command_lines;               /* enum command_lines */
};

/* Of a forked process whose /proc has another executable than the inherited one's nothing is taken
 * from there: it is its next program's, of whose start we have not heard yet.
 * Reads /proc/PID/exe, cmdline, environ (for OTEL_SERVICE_NAME), cgroup, status through the
 * process' directory (−1: it is gone). One reference; NULL: no memory. */
struct program_info *program_info_read(int directory, const struct program_info_source *source);
struct program_info *program_info_share(struct program_info *info); /* NULL is fine */
void program_info_free(struct program_info *info);                  /* one reference less */

#endif

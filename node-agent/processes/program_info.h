/* SPDX-License-Identifier: Apache-2.0 */
/* What a program is called: its executable's path, container, service, pod; shared between a
 * process and its forked children. */
#ifndef NODE_AGENT_PROCESSES_PROGRAM_INFO_H
#define NODE_AGENT_PROCESSES_PROGRAM_INFO_H

#include <stdint.h>

#include "node-agent/processes/process_table.h"

struct program_info {
	struct process_info shown;
	uint32_t references;
	char text[]; /* what shown points into */
};

/* Reads /proc/PID/exe and cgroup through the process' directory (−1: it is gone). What cannot be
 * read comes from inherited; exec_path, when not NULL, goes before an inherited path. One
 * reference; NULL: no memory. */
struct program_info *program_info_read(int directory, const struct program_info *inherited,
				       const char *exec_path);
struct program_info *program_info_share(struct program_info *info); /* NULL is fine */
void program_info_free(struct program_info *info);                  /* one reference less */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The files in which runtimes tell of the code they make, found and read while their processes run:
 *	/tmp/perf-PID.map	as the process has it: in its root, by its number there
 *	jit-PID.dump		which a process has mapped executable, wherever it lies
 * Where there is a dump the map is not read.
 *
 * Any user may put such files there. They are opened as kernel/stranger_file.h says, for the user
 * that the process began as; they have to be that user's or root's, and younger than the process;
 * the parser without privileges reads them, a piece at a time, and only what was added since. How
 * many pieces a second, and what is kept of them, is bounded, for a process and for all. */
#ifndef NODE_AGENT_RUNTIMES_JIT_FILES_H
#define NODE_AGENT_RUNTIMES_JIT_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "node-agent/processes/process_key.h"
#include "node-agent/runtimes/jit_code.h"
#include "node-agent/stacks/code_pages.h"

struct processes;
struct jit_files;

/* Both are borrowed and outlive it; the pages' parser answers it. */
struct jit_files *jit_files_new(struct processes *processes, struct code_pages *pages,
				struct error *err);
void jit_files_free(struct jit_files *files);

/* The code at an address that lies in no file, as jit_code_find(). The process is followed from now
 * on, and what it has not told of yet is looked for soon. */
enum jit_find jit_files_find(struct jit_files *files, const struct process_key *process,
			     uint64_t address, uint64_t time_ns, struct jit_name *name);

/* Whether more may be known soon of code that the process had at that time: its file is being
 * looked for, or was not read yet as of then, which it is within a second or so. is_urgent: rather
 * sooner.
 */
bool jit_files_is_coming(struct jit_files *files, const struct process_key *process,
			 uint64_t time_ns, bool is_urgent);
/* Another number when an answer to that may have changed. */
uint32_t jit_files_progress(const struct jit_files *files);

/* profile.frame.type of OpenTelemetry, "jit" where nobody knows. */
const char *jit_language_type(enum jit_language language);

/* Looks at what is due. now_ms: CLOCK_MONOTONIC. */
void jit_files_run(struct jit_files *files, int64_t now_ms);

struct jit_files_counters {
	uint32_t processes, entries; /* now: with such code, of functions that are known of */
	uint64_t bytes;              /* that these take */
	uint64_t maps, dumps;        /* files found */
	uint64_t pieces;             /* that were read */
	uint64_t named, unnamed;     /* frames */
	uint64_t unsure;  /* of the latter: code took another's place at about that time */
	uint64_t refused; /* lines and records: none, or without room; files: see foreign, failed */
	uint64_t cut;     /* names that were too long */
	uint64_t foreign; /* files not read: another user's, older than the process, no file */
	uint64_t failed;  /* files given up: no such file, or the parser failed */
};
void jit_files_counters(const struct jit_files *files, struct jit_files_counters *out);

#endif

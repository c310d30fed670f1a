/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's command line and file, checked: one table in agent_options.c. */
#ifndef NODE_AGENT_AGENT_OPTIONS_H
#define NODE_AGENT_AGENT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/log.h"
#include "common/options.h"
#include "node-agent/kernel/loader.h"

enum {
	LABELS_MAX = 30,
	LABEL_NAME_MAX = 128,
	LABEL_VALUE_MAX = 2048,
	PIDS_MAX = 1024,
	PROFILED_HZ_MAX = 1000,
};

enum interpreters { INTERPRETERS_ON, INTERPRETERS_OFF };

struct agent_options {
	/* --- as given --- */
	const char *server, *token_file, *ca_file, *output, *profile, *host, *debug_stacks;
	const char *budget_texts[KERNEL_SOURCE_COUNT];
	uint32_t frequency_hz, max_frames;
	int64_t report_interval_ms, duration_ms, timeout_ms; /* duration 0: until a signal */
	const char *spool;                                   /* NULL: none */
	int64_t spool_sync_ms;
	uint64_t queue_limit_bytes, spool_limit_bytes, upload_bytes_per_second;
	struct option_list pid_texts, label_texts;
	uint32_t capture, upload, log_level; /* index into the row's choices */
	uint32_t command_lines;              /* likewise: enum command_lines */
	uint32_t interpreters;               /* likewise: enum interpreters */
	const char *metrics_file;            /* NULL: none */
	bool check, status, debug_stop;
	bool timestamps;

	/* --- made of it --- */
	uint32_t pids[PIDS_MAX];
	size_t pid_count;
	const char *label_names[LABELS_MAX], *label_values[LABELS_MAX]; /* without service */
	size_t label_count;
	const char *service; /* --label service=…; NULL: none */
	bool upload_missing;
	uint32_t types;                      /* bit n: enum sample_type n is profiled */
	/* Shares of the machine; alloc: of a program's CPU time, of a CPU for a library's samples. */
	double budgets[KERNEL_SOURCE_COUNT];
};

/* As options_read(), and then what one row cannot check: exactly one of --server and --output
 * unless
 * --check or --status, labels, process ids, profile types. Also sets the log level. */
enum options_action agent_options_read(int argc, char **argv, struct agent_options *options,
				       struct error *err);

/* What --print-config would print of both is the same. */
bool agent_options_same(const struct agent_options *a, const struct agent_options *b);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* farflame-server's options: one table for command line, file, --help, --print-config and man page.
 */
#ifndef SYMBOL_SERVER_SERVER_OPTIONS_H
#define SYMBOL_SERVER_SERVER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/options.h"

enum server_repair { REPAIR_NO, REPAIR_PLAN, REPAIR_DROP }; /* as --repair has them */

struct server_options {
	const char *listen;
	const char *data;
	const char *store;
	const char *clickhouse_url; /* from store; NULL: SQLite */
	struct option_list debuginfod;
	struct option_list symbol_dirs;
	uint32_t sources; /* enum source_files_mode */
	struct option_list source_dirs;
	struct option_list imports;
	struct option_list hosts; /* names in Host */
	const char *backup;       /* NULL: serve */
	const char *backup_base;
	bool verify;
	uint32_t repair; /* enum server_repair */
	const char *retention;
	int64_t retention_ms;           /* from retention; 0: for ever */
	int64_t rollup_retention_ms[2]; /* of 10-minute and 1-hour roll-ups; 0: as retention_ms */
	const char *trace_retention;
	int64_t trace_retention_ms; /* from trace_retention; 0: none are kept */
	const char *max_disk;
	uint64_t max_disk_bytes;   /* from max_disk; 0: no limit, or a share */
	unsigned max_disk_percent; /* from max_disk: of the file system; 0: not a share */
	uint32_t series_limit;     /* of a day */
	uint64_t dictionary_memory_bytes;
	uint64_t symbol_memory_bytes;
	uint64_t symbol_disk_bytes; /* 0: no limit */
	uint64_t upload_disk_bytes; /* likewise */
	uint32_t workers;           /* threads that answer requests */
	uint32_t queries;           /* of them at most, for what may take long */
	int64_t query_time_ms;      /* of one query, as the next two */
	uint64_t query_memory_bytes;
	uint32_t query_rows;
	uint32_t symbol_workers; /* conversions at a time */
	uint32_t connections;
	uint32_t log_level; /* enum log_level */
	bool insecure;
};

extern const struct option_program server_program;

/* Options as read, then what only makes sense together: beyond loopback needs --insecure. */
enum options_action server_options_read(int argc, char **argv, struct server_options *options,
					struct error *err);

/* Whether the address of --listen can be reached from this host only. */
bool listen_is_loopback(const char *listen);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Build-id → symbol table: sources, conversion in workers, the cache of loaded tables. Nothing here
 * blocks ingest or a query: what is not there yet is wanted, and named at a later query. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SYMBOLIZER_H
#define SYMBOL_SERVER_SYMBOLIZE_SYMBOLIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/buffer.h"
#include "common/build_id.h"
#include "common/error.h"
#include "common/profile.h"
#include "symbol-server/store/symbols.h"

struct symbolizer_options {
	const char *const *symbol_dirs;
	size_t symbol_dir_count; /* --symbol-dir */
	unsigned sources;        /* --sources: enum source_files_mode */
	const char *const *source_dirs;
	size_t source_dir_count; /* --source-dir */
	const char *const *debuginfod_urls;
	size_t debuginfod_url_count; /* --debuginfod, in order */
	const char *cache_directory; /* inside --data: debuginfod's cache, uploads */
	size_t memory_limit_bytes;   /* of loaded tables, LRU */
	uint64_t disk_limit_bytes;   /* of packed tables, least used first; 0: no limit */
	unsigned workers;            /* conversions at a time */
	uint64_t upload_limit_bytes; /* of one file */
	uint64_t upload_disk_bytes;  /* of all, least used first; 0: no limit */
};

struct symbolizer;

struct symbolizer *symbolizer_start(const struct symbolizer_options *options,
				    struct symbols_store *store, struct error *err);

/* A module has been met in samples (or announced). Cheap when known. samples: weight to add,
 * hottest first; 0: announced only, which is not stored. name may be NULL. is_gnu false: never
 * asked from debuginfod. Thread-safe, as all here. */
void symbolizer_want(struct symbolizer *symbolizer, const struct build_id *id, const char *name,
		     bool is_gnu, uint64_t samples);
/* The same of a sender, any number for who it is: one that brings too many makes room first. */
void symbolizer_want_of(struct symbolizer *symbolizer, const struct build_id *id, const char *name,
			bool is_gnu, uint64_t samples, uint32_t sender);
/* Somebody wants its names now: directories and servers are asked again, whatever they said before
 * and when; agents may be too. ERROR_NOT_FOUND. */
bool symbolizer_ask_again(struct symbolizer *symbolizer, const struct build_id *id,
			  struct error *err);
/* How many modules made room for others since the start: they have to be told of again. */
uint64_t symbolizer_evicted(struct symbolizer *symbolizer);

/* For each of count ids whether there is a table of its names now: has_table[i]. Cheap. */
void symbolizer_have_names(struct symbolizer *symbolizer, const struct build_id *const *ids,
			   size_t count, bool *has_table);

/* true when an agent's file for this id would help: nothing better than dynsym is known, no upload
 * in progress, and no other source is still to be asked. For POST /api/v1/modules. */
bool symbolizer_wants_upload(struct symbolizer *symbolizer, const struct build_id *id);

/* An upload: write() the body's bytes as they arrive, then finish; expected_bytes 0: not known. One
 * sentence on failure: ERROR_LIMIT too large, ERROR_BUSY no room just now, ERROR_CONFLICT the
 * file's build-id is another, ERROR_FORMAT not an ELF with code or symbols (nor a kallsyms text),
 * ERROR_SYSTEM disk. finish returns whether it was new or better; the table follows in the
 * background. Both end the upload: finish or abort. */
struct symbol_upload;
struct symbol_upload *symbolizer_upload(struct symbolizer *symbolizer, const struct build_id *id,
					uint64_t expected_bytes, struct error *err);
bool symbol_upload_write(struct symbol_upload *upload, const void *bytes, size_t length,
			 struct error *err);
bool symbol_upload_finish(struct symbol_upload *upload, bool *is_new, struct error *err);
void symbol_upload_abort(struct symbol_upload *upload); /* NULL is fine */

/* ---- names ---- */

struct symbol_table;

/* The module's table (symbol_table.h), kept in memory until released. NULL: none yet, then reason
 * (if not NULL, at least 160 bytes) says why as a sentence. Loads from symbols.db when not in
 * memory (tens of ms).
 */
struct symbol_table *symbolizer_take_table(struct symbolizer *symbolizer, const struct build_id *id,
					   char *reason, size_t room);

/* ---- states ---- */

/* Every module with its state, in arena; see struct module_row. */
bool symbolizer_modules(struct symbolizer *symbolizer, struct arena *arena,
			struct module_row **rows, size_t *count, struct error *err);
/* What the sources said of each, in arena, by ascending build-id. */
bool symbolizer_candidates(struct symbolizer *symbolizer, struct arena *arena,
			   struct candidate_row **rows, size_t *count, struct error *err);

struct symbolizer_counters {
	uint64_t modules_by_state[MODULE_STATE_COUNT]; /* now */
	uint64_t conversions, conversions_failed, fetches, fetches_failed, uploads, uploads_refused;
	uint64_t uploads_damaged;                  /* found so when they were needed */
	uint64_t upload_bytes, upload_files;       /* now */
	uint64_t upload_limit_bytes;               /* 0: none */
	uint64_t uploads_evicted;                  /* files that made room */
	uint64_t tables_in_memory, table_bytes;    /* now */
	uint64_t queue;                            /* now */
	uint64_t tables_on_disk, disk_bytes;       /* now; packed */
	uint64_t tables_dropped;                   /* to make room on the disk */
	uint64_t modules_evicted, modules_refused; /* to make room; for want of it */
};
void symbolizer_counters(struct symbolizer *symbolizer, struct symbolizer_counters *out);

/* To look at the servers' states and the directories' progress; its own, never NULL. */
struct symbol_sources;
struct symbol_sources *symbolizer_sources(struct symbolizer *symbolizer);
struct symbol_directories;
struct symbol_directories *symbolizer_directories(struct symbolizer *symbolizer);

/* Ends workers and threads; unfinished conversions are taken up at the next start. */
void symbolizer_stop(struct symbolizer *symbolizer); /* NULL is fine */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* symbols.db: every module ever met, what is known about it and its packed symbol table. Rebuildable
 * except for uploads. */
#ifndef SYMBOL_SERVER_STORE_SYMBOLS_H
#define SYMBOL_SERVER_STORE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/buffer.h"
#include "common/build_id.h"
#include "common/error.h"

/* MODULE_STATE(name, "what it means"); names as on the API (schema/rest). */
#define MODULE_STATES(STATE)                                                                       \
	STATE(wanted, "no source has been asked yet")                                              \
	STATE(fetching, "a source is being asked")                                                 \
	STATE(converting, "its debug information is being converted")                              \
	STATE(symbols, "names from the symbol table; lines and inlined functions are not there yet") \
	STATE(ready, "converted")                                                                  \
	STATE(missing, "no source has it")                                                         \
	STATE(failed, "what was found could not be used")

#define MODULE_STATE_ENUM(name_, meaning_) MODULE_##name_,
enum module_state { MODULE_STATES(MODULE_STATE_ENUM) MODULE_STATE_COUNT };

/* What a table was made from, worst to best. A better one replaces a worse one, never the reverse.
 * MINIDEBUG: .gnu_debugdata, the functions that .dynsym has not. PCLNTAB: Go's own table, which has
 * lines and inlined functions as well. */
enum symbol_quality {
	QUALITY_NONE, QUALITY_KALLSYMS, QUALITY_DYNSYM, QUALITY_MINIDEBUG, QUALITY_SYMTAB,
	QUALITY_PCLNTAB, QUALITY_DWARF, QUALITY_COUNT,
};

/* Their numbers in symbols.db and in packed tables, which never change; a new one is appended. */
static const uint8_t symbol_quality_numbers[QUALITY_COUNT] = {
	[QUALITY_NONE] = 0, [QUALITY_KALLSYMS] = 1, [QUALITY_DYNSYM] = 2, [QUALITY_MINIDEBUG] = 6,
	[QUALITY_PCLNTAB] = 3, [QUALITY_SYMTAB] = 4, [QUALITY_DWARF] = 5,
};

/* QUALITY_COUNT: it is none of ours. */
static inline enum symbol_quality symbol_quality_of(int64_t number)
{
	enum symbol_quality quality = QUALITY_NONE;

	while (quality < QUALITY_COUNT && symbol_quality_numbers[quality] != number)
		quality++;
	return quality;
}

struct module_row {
	struct build_id id;
	const char *name; /* base name, "" unknown */
	enum module_state state;
	enum symbol_quality quality;
	const char *reason; /* a sentence; "" when ready */
	const char *source; /* "upload", "directory", a debuginfod URL …; "" when none */
	uint64_t raw_bytes, packed_bytes; /* of the table */
	uint32_t functions, ranges;
	int64_t retry_at_ms, first_seen_ms, updated_ms;
	uint32_t failures;
	bool is_uploaded;
	uint32_t flags;       /* enum symbol_table_flags: what the table could not have */
	uint32_t converter;   /* version that made the table, or failed to; 0: none yet */
	uint64_t files;       /* fingerprint of the files it was made from; 0: none */
	uint64_t file_bytes;  /* of these files */
	uint32_t fetch_ms, conversion_ms;
	int64_t last_used_ms; /* of the table; stored hourly at most */
	bool is_dropped;      /* the table made room for others */
	bool is_gnu;          /* has been met as a GNU build-id */
	bool is_working;      /* files of it are looked for or converted now; not stored */
};

/* CANDIDATE_ANSWER(name, "what it means"): what a source said when it was asked for a module. */
#define CANDIDATE_ANSWERS(ANSWER)                                                                  \
	ANSWER(used, "the table was made from it")                                                 \
	ANSWER(found, "it has the file; something else was as good or better")                     \
	ANSWER(not_found, "it does not have it")                                                   \
	ANSWER(unusable, "what it has could not be converted")                                     \
	ANSWER(wrong_file, "it sent something else")                                               \
	ANSWER(too_large, "it has it, but larger than is downloaded")                              \
	ANSWER(down, "it did not answer, or with an error: says nothing about the module")         \
	ANSWER(closed, "not asked: it is down or stalls")                                          \
	ANSWER(no_room, "our own disk or memory had no room for the file")                         \
	ANSWER(stopped, "this server is stopping")

#define CANDIDATE_ENUM(name_, meaning_) CANDIDATE_##name_,
enum candidate_answer { CANDIDATE_ANSWERS(CANDIDATE_ENUM) CANDIDATE_ANSWER_COUNT };

/* Files that are here; servers asked for the module; servers asked for its dwz file. */
enum candidate_side { CANDIDATE_HERE, CANDIDATE_REMOTE, CANDIDATE_REMOTE_ALT, CANDIDATE_SIDES };

struct candidate_row {
	struct build_id id;
	enum candidate_side side;
	const char *source; /* "upload", "directory", a debuginfod URL */
	enum candidate_answer answer;
	const char *detail; /* a sentence or what is in the file; "" when there is nothing to say */
	uint64_t bytes;
	uint32_t ms; /* it took to answer */
	int64_t at_ms;
};

struct symbols_store;

struct symbols_store *symbols_open(const char *directory, struct error *err); /* DIR/symbols.db */

/* Rows in arena. false with ERROR_NOT_FOUND when the id (or its alias) is unknown. */
bool symbols_module(struct symbols_store *store, const struct build_id *id, struct arena *arena,
		    struct module_row *row, struct error *err);
bool symbols_modules(struct symbols_store *store, struct arena *arena, struct module_row **rows,
		     size_t *count, struct error *err);
/* Inserts or replaces everything but the table. */
bool symbols_put_module(struct symbols_store *store, const struct module_row *row, struct error *err);
/* The same for many, in one transaction. */
bool symbols_put_modules(struct symbols_store *store, const struct module_row *rows, size_t count,
			 struct error *err);
/* Their rows, aliases and what sources answered, in one transaction; tables stay. At most 10000. */
bool symbols_drop_modules(struct symbols_store *store, const struct build_id *ids, size_t count,
			  struct error *err);
/* htlhash or Go id ↔ GNU id, whichever is canonical. */
bool symbols_put_alias(struct symbols_store *store, const struct build_id *alias,
		       const struct build_id *id, struct error *err);

/* What the sources of one side said last; replaces what they said before. */
bool symbols_put_candidates(struct symbols_store *store, const struct build_id *id,
			    enum candidate_side side, const struct candidate_row *rows, size_t count,
			    struct error *err);
/* One of them in a new light, such as found → used. */
bool symbols_judge_candidate(struct symbols_store *store, const struct build_id *id,
			     enum candidate_side side, const char *source,
			     enum candidate_answer answer, const char *detail, struct error *err);
/* All, by module as symbols_modules() has them. */
bool symbols_candidates(struct symbols_store *store, struct arena *arena,
			struct candidate_row **rows, size_t *count, struct error *err);

/* The packed table as one BLOB with its format version; replaces the old one. Whole or not at all. */
bool symbols_put_table(struct symbols_store *store, const struct build_id *id, uint32_t format,
		       const void *bytes, size_t length, struct error *err);
/* ERROR_NOT_FOUND when there is none. Does not wait for who writes. */
bool symbols_get_table(struct symbols_store *store, const struct build_id *id, uint32_t *format,
		       struct buffer *out, struct error *err);

/* Its room goes back to the disk in time: symbols_give_back(), called until it returns false. */
bool symbols_drop_table(struct symbols_store *store, const struct build_id *id, struct error *err);
bool symbols_give_back(struct symbols_store *store);

void symbols_close(struct symbols_store *store); /* NULL is fine */

#endif

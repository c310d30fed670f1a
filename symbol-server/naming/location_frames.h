/* SPDX-License-Identifier: Apache-2.0 */
/* Names for every location of a result: a run of frames each, root first (inlined functions are
 * frames of their own), with what the view's patterns say about each name. */
#ifndef SYMBOL_SERVER_NAMING_LOCATION_FRAMES_H
#define SYMBOL_SERVER_NAMING_LOCATION_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/error.h"
#include "common/hash_table.h"
#include "symbol-server/naming/named_stacks.h"

enum { INCOMPLETE_REASONS = ACCOUNTING_REASONS };
enum { NAME_FOCUSED = 1, NAME_IGNORED = 2, NAME_HIDDEN = 4, NAME_OF_BUILD = 8, NAME_IDLE = 64 };

struct named_location {
	uint32_t first, count; /* into frames */
	bool is_unresolved, is_incomplete;
	bool is_behind; /* an interpreter's own code, left out: that it lacks a name hides nothing
			 */
	uint8_t reason; /* of an incomplete one: into reasons */
};

struct name_entry {                    /* what became of one text of a symbol table */
	const char *raw, *file;        /* file: NULL where it does not tell it apart */
	const char *shown, *signature; /* signature: NULL where shown says it */
	uint64_t hash, signature_hash;
	uint8_t flags;
};

struct location_frames {
	struct flame_frame *frames;
	uint8_t *flags; /* NAME_* of each frame */
	size_t count, capacity;
	struct named_location *locations; /* as in the result */
	struct flame_module *modules;     /* equal build-ids joined */
	uint32_t module_count;
	uint32_t *module_of; /* the result's module → modules */
	bool *hidden;        /* of modules: their frames are left out */
	uint32_t build;      /* the module of view->build; FRAME_NO_MODULE: none */
	const char *reasons[INCOMPLETE_REASONS]; /* distinct sentences; what is over is the last */
	unsigned reason_count;
	/* private below */
	const struct samples_result *result;
	const struct stack_view *view;
	struct arena arena;
	const struct result_module **origins; /* of modules */
	struct symbol_table **tables;
	struct hash_table names;
	struct name_entry *entries;
	uint32_t entry_count, entry_capacity, last_entry;
	struct symbol_frame last_chain[SYMBOL_CHAIN_MAX]; /* of the table's, added last */
	uint32_t last_first, last_length, last_module;    /* length 0: none yet */
	enum location_kind last_place;
};

/* Release it in either case. ERROR_MEMORY, ERROR_LIMIT. */
bool location_frames_init(struct location_frames *names, const struct samples_result *result,
			  struct symbolizer *symbolizer, const struct stack_view *view,
			  struct error *err);
void location_frames_release(struct location_frames *names);

#endif

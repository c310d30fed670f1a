/* SPDX-License-Identifier: Apache-2.0 */
/* The modules the symbolizer knows, in memory, and which of them are waiting for what. No lock of
 * its own: the symbolizer's is held. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_MODULE_LIST_H
#define SYMBOL_SERVER_SYMBOLIZE_MODULE_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/hash_table.h"
#include "symbol-server/store/symbols.h"

enum module_queue {
	QUEUE_NONE,
	QUEUE_LOCAL, /* files that are here: find and convert */
	QUEUE_FETCH, /* ask the debuginfod servers */
	QUEUE_COUNT,
	QUEUE_BUSY = QUEUE_COUNT, /* a thread has it */
};

enum { MODULES_MAX = 100000 };

struct module {
	struct build_id id;
	char name[64], reason[200], source[128];
	bool is_gnu;      /* may be asked from debuginfod */
	bool is_uploaded; /* an upload for it is kept */
	enum module_state state;
	enum symbol_quality quality; /* of the table in the store; QUALITY_NONE: there is none */
	uint64_t raw_bytes, packed_bytes;
	uint32_t functions, ranges;
	uint32_t failures; /* misses in a row */
	int64_t retry_at_ms, first_seen_ms, updated_ms;
	int64_t asked_for_ms; /* when an agent was last asked to upload it; not stored */

	enum module_queue queue;
	bool is_again;      /* something new came while a thread had it */
	bool is_met;        /* in samples or a query since the last try */
	bool is_asked_here; /* local files have been looked for */
	bool has_failed;    /* files that are here could not be converted; reason says why */
	bool is_fetched;    /* debuginfod has been asked in this round */
	uint32_t uploading; /* uploads being received */
	int downloaded;     /* descriptor of debuginfod's file; −1 */
	char url[128];      /* where that came from */
	uint64_t
		converted; /* fingerprint of the files the last conversion was made from; 0: none */
	uint64_t weight;   /* samples */
};

struct module_list {
	struct module *modules;
	uint32_t count, room;
	struct hash_table by_id;
	struct {
		uint32_t *numbers;
		uint32_t count, room;
	} queues[QUEUE_COUNT];
	uint64_t refused; /* beyond MODULES_MAX */
};

void module_list_init(struct module_list *list);
void module_list_release(struct module_list *list);

/* NULL: unknown. The pointer holds until the next add. */
struct module *module_list_find(struct module_list *list, const struct build_id *id);
/* Known, or new in state wanted. NULL: the ceiling or memory is reached; counted. */
struct module *module_list_add(struct module_list *list, const struct build_id *id, int64_t now_ms);

/* Puts it into the queue; one that waits for something else or that a thread has is marked
 * (is_again) for its thread to queue it again. */
void module_list_queue(struct module_list *list, struct module *module, enum module_queue queue);
/* The module with the most samples, now BUSY; NULL: the queue is empty. */
struct module *module_list_take(struct module_list *list, enum module_queue queue);

void module_to_row(const struct module *module, struct module_row *row);
void module_from_row(struct module *module, const struct module_row *row);

/* Fills a fixed text field, cut at its end. */
void module_text(char *field, size_t room, const char *text);
#define MODULE_TEXT(field_, text_) module_text(field_, sizeof(field_), text_)

#endif

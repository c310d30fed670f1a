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
	QUEUE_LOCAL,   /* files that are here: find, and names at once */
	QUEUE_CONVERT, /* debug information that was found, which takes its time */
	QUEUE_FETCH,   /* ask the debuginfod servers */
	QUEUE_COUNT,
	QUEUE_BUSY = QUEUE_COUNT, /* a thread has it */
};

enum {
	MODULES_MAX = 100000,
	ANNOUNCED_MAX = 8192, /* modules that were only announced: kept in memory, not stored */
};

struct module {
	struct build_id id;
	char name[64], reason[200], source[128];
	bool is_gnu;      /* may be asked from debuginfod */
	bool is_uploaded; /* an upload for it is kept */
	enum module_state state;
	enum symbol_quality quality; /* of the table in the store; QUALITY_NONE: there is none */
	uint32_t flags;              /* of that table */
	uint64_t raw_bytes, packed_bytes;
	uint32_t functions, ranges;
	uint32_t failures;  /* misses in a row */
	uint32_t converter; /* version of the last conversion */
	uint64_t files;     /* fingerprint of the files it was made from; 0: none */
	uint64_t file_bytes;
	uint32_t fetch_ms, conversion_ms;
	bool is_dropped; /* its table made room for others: made again when it is asked for */
	int64_t retry_at_ms, first_seen_ms, updated_ms;
	int64_t last_used_ms, stored_used_ms; /* of the table; the second is what the store knows */
	int64_t asked_for_ms;   /* when an agent was last asked to upload it; not stored */
	int64_t upload_gone_ms; /* when its upload made room, or was deleted; not stored */
	int64_t dropped_ms;

	bool is_stored;  /* it has a row in the store */
	bool is_sampled; /* met in samples since the start; else announced, or of the store */
	int64_t met_ms;  /* when it was last met or announced */
	uint32_t sender; /* who brought it first, hashed; 0: not known */

	enum module_queue queue;
	bool is_again;      /* something new came while a thread had it */
	bool is_met;        /* in samples or a query since the last try */
	bool has_failed;    /* files that are here could not be converted; reason says why */
	bool is_fetched;    /* debuginfod has been asked in this round */
	bool is_down;       /* a server could not be asked in this round */
	bool is_unsaved;    /* its row in the store is older than this */
	uint32_t uploading; /* uploads being received */
	int downloaded;     /* descriptor of debuginfod's file; −1 */
	char url[128];      /* where that came from */

	/* The dwz file its debug information borrows from, where it is not on this machine. */
	struct build_id alt; /* length 0: none is missing */
	bool is_alt_asked;   /* of debuginfod, in this round */
	int alt_downloaded;  /* −1 */

	/* Who comes first: those without names whose file was uploaded, the others without names,
	 * then those without lines, then those whose table is made anew; among these the heavier,
	 * then who waits longer. */
	uint8_t rank;
	uint64_t weight; /* samples that have no name for want of a table, or for a poor one */
	uint64_t order;  /* of queueing */
	uint32_t place;  /* in its queue */
};

struct module_list {
	struct module *modules;
	uint32_t count, room;
	struct hash_table by_id;
	struct module_heap { /* numbers of modules, the heaviest first */
		uint32_t *numbers;
		uint32_t count, room;
	} queues[QUEUE_COUNT];
	uint64_t queued;            /* ever */
	uint64_t refused;           /* beyond MODULES_MAX, all of them in use */
	uint64_t evicted;           /* made room for others */
	uint32_t announced;         /* at most so many of them are neither stored nor sampled */
	struct build_id *forgotten; /* rows in the store of those that made room */
	size_t forgotten_count, forgotten_room;
};

void module_list_init(struct module_list *list);
void module_list_release(struct module_list *list);

/* NULL: unknown. The pointer holds until the next add. */
struct module *module_list_find(struct module_list *list, const struct build_id *id);
/* Known, or new in state wanted. NULL: memory is reached, or the ceiling with modules that are all
 * in use; counted. At the ceiling those make room that nothing backs: no table, no upload, no
 * thread that works on it. First go those that no sample met, then those of a sender that brought
 * more than a quarter of all, then those not met for longest. */
struct module *module_list_add(struct module_list *list, const struct build_id *id, int64_t now_ms);

/* It was announced, or met in samples, by that sender. */
void module_list_meet(struct module_list *list, struct module *module, bool is_sampled,
		      uint32_t sender, int64_t now_ms);

/* Moves what is to be deleted in the store to ids; how many. */
size_t module_list_take_forgotten(struct module_list *list, struct build_id *ids, size_t room);

/* Whether its row is worth one in the store. */
bool module_is_kept(const struct module *module);

/* Lets those go that nothing backs until room for some thousand is there (module_evict.c). is_full:
 * of all; else of those that were only announced. False: none could go. */
bool module_list_make_room(struct module_list *list, bool is_full);

/* Modules have other numbers now: numbers[old], UINT32_MAX for those that are gone. */
void module_list_renumber(struct module_list *list, enum module_queue queue,
			  const uint32_t *numbers);

/* Puts it into the queue; one that waits for something else or that a thread has is marked
 * (is_again) for its thread to queue it again. */
void module_list_queue(struct module_list *list, struct module *module, enum module_queue queue);
/* Samples it left without names; moves it forward where it waits. */
void module_list_weigh(struct module_list *list, struct module *module, uint64_t samples);
/* The first of the queue, now BUSY; NULL: it is empty. */
struct module *module_list_take(struct module_list *list, enum module_queue queue);

void module_to_row(const struct module *module, struct module_row *row);
void module_from_row(struct module *module, const struct module_row *row);

/* Fills a fixed text field, cut at its end. */
void module_text(char *field, size_t room, const char *text);
#define MODULE_TEXT(field_, text_) module_text(field_, sizeof(field_), text_)

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* One day's dictionary: strings, modules, locations, stacks and series, each with a number from 1
 * in the order met; 0 means none. The same numbers are in memory, in the journal and in the day's
 * file. One writer under the store's lock; readers follow numbers they were given, without a lock.
 */
#ifndef SYMBOL_SERVER_STORE_SQLITE_DICTIONARY_CATALOG_H
#define SYMBOL_SERVER_STORE_SQLITE_DICTIONARY_CATALOG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/buffer.h"
#include "common/hash_table.h"
#include "symbol-server/store/blocks.h"
#include "symbol-server/store/samples.h"
#include "symbol-server/store/rules/sender_shares.h"

enum catalog_kind { /* on disk: numbers stay */
		    CATALOG_STRINGS,
		    CATALOG_MODULES,
		    CATALOG_LOCATIONS,
		    CATALOG_STACKS,
		    CATALOG_SERIES,
		    CATALOG_KINDS,
};

enum {
	CATALOG_OVERFLOW_STACK = 1, /* what stands for stacks that found no room any more */
	CATALOG_BYTES_MAX = 768 << 20,
	CATALOG_STACKS_MAX = 3 << 20,
	CATALOG_SERIES_MAX = 1 << 20,
};

struct catalog_string {
	const char *text; /* NUL-terminated */
	uint32_t length;
};

struct catalog_module {
	struct build_id id, htlhash;
	uint32_t go_id, name; /* strings */
	enum address_base base;
};

struct catalog_location {
	uint64_t address;
	uint32_t module, function, file, type, line; /* line is a number, the rest refer */
	enum location_kind kind;
};

/* Stacks share their callers: a stack is the number of its leaf's node, and the way up from there.
 * Numbers from 1 in the order met, so that a caller's is the smaller one; 0 is above all. */
struct catalog_node {
	uint32_t caller, location;
};

enum { CATALOG_NODE_BLOCK = 8192, CATALOG_NODE_BLOCKS = 8192 };

struct catalog_nodes {
	struct catalog_node *block[CATALOG_NODE_BLOCKS]; /* never move */
	uint32_t count;
	/* (caller, location) → node; 0: free. Of the nodes that do not come right after their
	 * caller, which needs none. NULL: none has been looked for. */
	uint32_t *index;
	uint32_t index_size, indexed; /* size: a power of two */
};

struct catalog_stack {
	uint64_t hash[2];
	uint32_t node, depth;
};

struct catalog_series {
	const uint32_t *labels; /* pairs of strings: name, value */
	uint32_t label_count;
	uint32_t tenant;
	uint32_t host; /* string: the value of label host */
};

struct catalog_mark { /* how much of each kind there is: numbers below are defined */
	uint32_t count[CATALOG_KINDS];
	uint32_t nodes;
};

struct catalog {
	int references; /* atomic */
	struct blocks items[CATALOG_KINDS];
	struct hash_table index[CATALOG_KINDS];
	bool is_indexed; /* the hash tables are filled; readers alone do not need them */
	struct catalog_nodes nodes;
	struct arena arena;            /* texts, labels */
	struct catalog_mark logged;    /* defined in the journal or the file */
	struct catalog_mark persisted; /* defined in the day's file */
	uint64_t overflowed;           /* stacks that found no room */
	bool is_closed;                /* to new stacks: whoever adds has had its share */
	struct sender_shares senders;  /* what each added since this was read, in weight */
	struct series_counted {        /* below number "through", of one tenant */
		uint32_t tenant, through, series;
		struct sender_shares hosts; /* by the string's number */
	} series_counted;
	bool mends;                    /* decoding makes up what is missing: catalog_mend() */
	uint64_t mended;               /* definitions that were made up */
};

struct catalog *catalog_new(void); /* NULL: no memory. One reference. */
struct catalog *catalog_take(struct catalog *catalog);
void catalog_release(struct catalog *catalog); /* NULL is fine */

struct catalog_mark catalog_mark(const struct catalog *catalog);
/* Everything that it defines is in the day's file: whoever reads that has the same numbers. */
bool catalog_is_persisted(const struct catalog *catalog);
size_t catalog_bytes(const struct catalog *catalog);
/* What its items take themselves, without the room that is made for more: it grows by each. */
uint64_t catalog_weight(const struct catalog *catalog);
/* So much that a new series may have found no room. Under the store's lock. */
bool catalog_is_full(const struct catalog *catalog);

static inline const struct catalog_string *catalog_string(const struct catalog *catalog, uint32_t n)
{
	return blocks_at(&catalog->items[CATALOG_STRINGS], n);
}
static inline const struct catalog_module *catalog_module(const struct catalog *catalog, uint32_t n)
{
	return blocks_at(&catalog->items[CATALOG_MODULES], n);
}
static inline const struct catalog_location *catalog_location(const struct catalog *catalog,
							      uint32_t n)
{
	return blocks_at(&catalog->items[CATALOG_LOCATIONS], n);
}
static inline const struct catalog_stack *catalog_stack(const struct catalog *catalog, uint32_t n)
{
	return blocks_at(&catalog->items[CATALOG_STACKS], n);
}
static inline const struct catalog_series *catalog_series(const struct catalog *catalog, uint32_t n)
{
	return blocks_at(&catalog->items[CATALOG_SERIES], n);
}

static inline const struct catalog_node *catalog_node(const struct catalog *catalog, uint32_t n)
{
	return &catalog->nodes.block[n / CATALOG_NODE_BLOCK][n % CATALOG_NODE_BLOCK];
}
/* The stack's locations, leaf first; room for its depth. */
void catalog_stack_locations(const struct catalog *catalog, const struct catalog_stack *stack,
			     uint32_t *locations);

/* Reading back is over: what only helps adding goes, and comes back when something is added. */
void catalog_drop_index(struct catalog *catalog);
/* That takes a while for a large one, and who adds has the store's lock. So: a dictionary that
 * shares its items with one that is not indexed, under the lock, NULL: no memory; is indexed
 * without it; and, under it again, gives its index and is freed. NULL is fine for both. */
struct catalog *catalog_alike(const struct catalog *catalog);
void catalog_index_alike(struct catalog *alike);
void catalog_take_index(struct catalog *catalog, struct catalog *alike);

/* Numbers of things, added when new. 0: no room (for the empty string: 0 always). */
uint32_t catalog_add_string(struct catalog *catalog, struct text text);
/* The same without adding anything: 0 when it is not known. */
uint32_t catalog_find_string(struct catalog *catalog, struct text text);
uint32_t catalog_add_series(struct catalog *catalog, uint32_t tenant,
			    const struct batch_series *series);
/* The same without adding anything: 0 when that series is not known. */
uint32_t catalog_find_series(struct catalog *catalog, uint32_t tenant,
			     const struct batch_series *series);
/* Translates a batch; maps hold the numbers met so far, 0 = not yet, one per entry of the batch. */
struct catalog_translation {
	const struct sample_batch *batch;
	uint32_t *modules, *locations, *stacks;
};
/* Never fails: a stack without room becomes CATALOG_OVERFLOW_STACK and is counted. */
uint32_t catalog_add_stack(struct catalog *catalog, struct catalog_translation *translation,
			   uint32_t stack);

/* Definitions of one kind, numbers first … first + count − 1, as bytes; and back. Numbers that are
 * defined already are skipped; a gap or a reference to something undefined is ERROR_FORMAT and adds
 * nothing further. */
void catalog_encode(const struct catalog *catalog, enum catalog_kind kind, uint32_t first,
		    uint32_t count, struct buffer *out);
bool catalog_decode(struct catalog *catalog, enum catalog_kind kind, uint32_t first, uint32_t count,
		    const uint8_t **at, const uint8_t *end, struct error *err);

#define CATALOG_DAMAGED_TEXT "(damaged)"

/* Makes up definitions of the kind until there are numbers below until: what others refer to and
 * was damaged. Stacks are CATALOG_OVERFLOW_STACK's, texts CATALOG_DAMAGED_TEXT, series have no
 * labels, which no other has. False: no room, or more than damage explains. */
bool catalog_mend(struct catalog *catalog, enum catalog_kind kind, uint32_t until);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* One samples_query() under way. Of this folder only. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_QUERYING_H
#define SYMBOL_SERVER_STORE_SQLITE_QUERYING_H

#include "symbol-server/store/sqlite/view.h"

struct piece { /* one row */
	struct view_row row;
	uint32_t series; /* of the result */
};

struct day_maps { /* numbers of a day's catalog → numbers of the result + 1; 0: not met yet */
	const uint8_t *is_wanted;
	uint32_t *series, *stacks, *locations, *modules;
	const char **strings;
	uint8_t *threads; /* 0 not asked, 1 wanted, 2 not */
	uint8_t *is_host; /* strings: took part in a row whose series has no host */
};

struct sum {
	uint64_t samples, value;
};

struct thread_sum { /* of by_thread queries */
	const char *thread;
	uint32_t stack;
	struct sum sum;
};

struct querying {
	struct view view;
	const struct samples_query *query;
	struct samples_result *result;
	unsigned type;
	struct day_maps *maps;
	struct hash_table stack_index, series_index; /* across days */
	struct piece *pieces;
	size_t piece_count, piece_capacity;
	/* stacks of the result, whichever series has them */
	struct distinct_stack {
		uint64_t hash[2];
		const struct catalog_stack *from;
		struct view_day *day;
		const uint32_t *locations;
	} * stacks;
	uint32_t stack_count, stack_capacity;
	struct sum *sums; /* by stack; zero between series */
	uint32_t *touched;
	uint32_t touched_count, sums_room;
	struct thread_sum *thread_sums;
	size_t thread_count, thread_capacity;
	/* of the group being added up */
	struct view_day *day;
	uint32_t series;
	size_t stack_room; /* of result->stacks */
	bool is_full;
};

/* Room for one more element of a malloc()ed array. */
bool querying_grow(void **array, size_t count, size_t *capacity, size_t size);

static inline struct day_maps *querying_maps(struct querying *querying, const struct view_day *day)
{
	return &querying->maps[day - querying->view.days];
}

/* A catalog's string as the result's own; "" for 0 and when the result is full (is_full says so).
 */
const char *querying_string(struct querying *querying, struct view_day *day, uint32_t string);

/* The locations and modules of the stacks that are in the result. False: no room. */
bool querying_put_locations(struct querying *querying);

/* A host of a row whose series has none: of a roll-up. */
void querying_keep_host(void *context, uint32_t host);
/* The accounts of the hosts. */
bool querying_put_hosts(struct querying *querying, struct error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What was read of ClickHouse's dictionaries: stacks, locations, modules, series by their ids, kept
 * for the next query. Only grows; who finds it full starts a new one. Thread-safe. */
#ifndef SYMBOL_SERVER_STORE_CLICKHOUSE_DEFINITIONS_H
#define SYMBOL_SERVER_STORE_CLICKHOUSE_DEFINITIONS_H

#include <pthread.h>

#include "common/arena.h"
#include "common/hash_table.h"
#include "symbol-server/store/blocks.h"
#include "symbol-server/store/samples.h"

enum definition_kind {
	DEFINITION_MODULES,
	DEFINITION_LOCATIONS,
	DEFINITION_STACKS,
	DEFINITION_SERIES,
	DEFINITION_KINDS,
};

struct defined_module {
	uint64_t id;
	struct result_module module;
};

struct defined_location {
	uint64_t id, module_id;          /* 0: none */
	struct result_location location; /* its module is a number of this dictionary */
};

struct defined_stack {
	uint64_t id;
	uint32_t *locations; /* leaf first; numbers of this dictionary, UINT32_MAX: not defined */
	uint32_t depth;
};

struct defined_series {
	uint64_t id;
	uint32_t tenant;
	struct series_labels labels;
	const char *host; /* "" when it has none */
};

struct definitions {
	int references;          /* atomic */
	pthread_mutex_t reading; /* taken before lock: only one query reads at a time */
	bool is_broken;       /* reading stopped in the middle: not to be used by others any more */
	pthread_mutex_t lock; /* the rest */
	struct arena arena;
	struct blocks items[DEFINITION_KINDS];
	struct hash_table index[DEFINITION_KINDS];
};

struct definitions *definitions_new(void); /* NULL: no memory. One reference. */
struct definitions *definitions_take(struct definitions *definitions);
void definitions_release(struct definitions *definitions); /* NULL is fine */
size_t definitions_bytes(const struct definitions *definitions);

/* The numbers of the ids; UINT32_MAX: not read. What has a number never changes and lives as long
 * as the reference. */
void definitions_numbers(struct definitions *definitions, enum definition_kind kind,
			 const uint64_t *ids, size_t count, uint32_t *numbers);
uint32_t definitions_count(struct definitions *definitions, enum definition_kind kind);
static inline const void *definitions_at(const struct definitions *definitions,
					 enum definition_kind kind, uint32_t number)
{
	return blocks_at(&definitions->items[kind], number);
}

struct clickhouse;
struct definitions_range { /* of samples that refer to them */
	uint32_t tenant, first_month, last_month;
	const struct samples_limits *limits;
	bool (*is_cancelled)(void *context);
	void *context;
};

/* Reads those of the ids that are not there yet; with stacks their locations and modules. ids may
 * hold the same one more than once. ERROR_LIMIT: it is full. */
bool definitions_read(struct definitions *definitions, struct clickhouse *client,
		      enum definition_kind kind, const struct definitions_range *range,
		      const uint64_t *ids, size_t count, struct error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What is behind samples.h: one table of functions per engine. samples.h says what each does. */
#ifndef SYMBOL_SERVER_STORE_SAMPLES_ENGINE_H
#define SYMBOL_SERVER_STORE_SAMPLES_ENGINE_H

#include "symbol-server/store/samples.h"

struct samples_engine {
	bool (*add)(struct samples_store *store, const struct sample_batch *batch,
		    samples_done_fn *done, void *context, unsigned *duplicates, struct error *err);
	struct samples_result *(*query)(struct samples_store *store,
					const struct samples_query *query, struct error *err);
	struct samples_timeline *(*timeline)(struct samples_store *store,
					     const struct samples_query *query, struct error *err);
	bool (*types)(struct samples_store *store, const struct samples_query *query,
		      struct arena *arena, struct type_count **rows, size_t *count,
		      struct error *err);
	bool (*labels)(struct samples_store *store, const struct samples_query *query,
		       struct arena *arena, struct label_count **rows, size_t *count,
		       struct error *err);
	bool (*label_values)(struct samples_store *store, const struct samples_query *query,
			     const char *label, struct arena *arena, struct value_count **rows,
			     size_t *count, struct error *err);
	bool (*moments)(struct samples_store *store, const struct samples_query *query,
			samples_moment_fn *fn, void *context, struct error *err);
	bool (*spans)(struct samples_store *store, const struct samples_query *query,
		      samples_span_fn *fn, void *context, struct error *err);
	bool (*remove)(struct samples_store *store, const struct samples_query *query,
		       struct samples_deleted *deleted, struct error *err);
	bool (*agents)(struct samples_store *store, uint32_t tenant, struct arena *arena,
		       struct agent_state **rows, size_t *count, struct error *err);
	uint64_t (*cpus)(struct samples_store *store, uint32_t tenant, const char *const *names,
			 uint32_t count); /* NULL: not kept */
	void (*counters)(struct samples_store *store, struct samples_counters *out);
	bool (*fold)(struct samples_store *store, struct error *err);
	void (*close)(struct samples_store *store);
};

/* The first member of every engine's own store. */
struct samples_store {
	const struct samples_engine *engine;
};

struct samples_store *sqlite_samples_open(const struct samples_store_options *options,
					  struct error *err);
struct samples_store *clickhouse_samples_open(const struct samples_store_options *options,
					      struct error *err);

#endif

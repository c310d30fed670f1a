/* SPDX-License-Identifier: Apache-2.0 */
/* Gauges: samples of what there is (bytes in use) at the end of a report. They are kept as what can
 * be added up like all others: value × the report's length, in bytes × seconds; the count likewise.
 * Each report's length is kept, too, as a sample of a stack of our own. What is asked of a range is
 * the mean over time: the sum divided by the time from the first to the last bucket that has any,
 * of all that the query selects. Where one series was there all that time, its reports' lengths
 * say it to the second; else whole buckets count. Of steps it is each step's own mean.
 *
 * Between samples.h and the engines, which know nothing of it. */
#ifndef SYMBOL_SERVER_STORE_GAUGES_H
#define SYMBOL_SERVER_STORE_GAUGES_H

#include "symbol-server/store/samples_engine.h"

bool gauges_have(const struct sample_batch *batch);

/* The same batch with gauges made additive: additive borrows from batch and from what is returned.
 * NULL: no memory. */
struct gauge_batch *gauge_batch_new(const struct sample_batch *batch,
				    struct sample_batch *additive);
void gauge_batch_free(struct gauge_batch *gauges);

bool gauge_query_is(const struct samples_query *query);
/* As samples.h says of samples_query() and so on. */
struct samples_result *gauge_query(struct samples_store *store, const struct samples_query *query,
				   struct error *err);
struct samples_timeline *gauge_timeline(struct samples_store *store,
					const struct samples_query *query, struct error *err);
/* Puts means into the rows of gauges. */
bool gauge_types(struct samples_store *store, const struct samples_query *query,
		 struct type_count *rows, size_t count, struct error *err);

#endif

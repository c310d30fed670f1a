/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows stand for which part of the time, so that each sample counts once: sums where ten
 * minutes or an hour lie whole in the range, minutes elsewhere. Where minutes are not kept any more
 * the range grows. Which of them may is said by rollup_choice.h. Of this folder only. */
#ifndef SYMBOL_SERVER_STORE_CLICKHOUSE_PARTS_H
#define SYMBOL_SERVER_STORE_CLICKHOUSE_PARTS_H

#include "symbol-server/store/clickhouse/samples_store.h"
#include "symbol-server/store/rules/rollup_choice.h"

enum { SPANS_MAX = 12 /* a question has to fit a URL */ };

struct rolled {
	uint32_t start, length; /* seconds */
	uint64_t version;
	bool is_alone; /* minutes are not kept */
};

struct parts {
	uint32_t from, until; /* unix seconds, widened */
	uint32_t kept_from;   /* from, or the first minute that is kept */
	struct span {
		uint32_t from, until;
	} raw[SPANS_MAX + 1];
	unsigned raw_count;
	struct rolled *rolled;
	size_t rolled_count, rolled_room;
	bool has_late; /* late_samples may have some of it, reports_kept too */
	uint32_t resolution_s;
};

/* from and until are whole minutes. */
bool parts_choose(struct clickhouse_samples *store, int64_t now_ms, uint32_t from, uint32_t until,
		  const struct rollup_wants *wants, struct parts *parts, struct error *err);
void parts_release(struct parts *parts);

/* What is kept now. */
struct rollup_kept clickhouse_kept(const struct clickhouse_samples *store, int64_t now_ms);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Which sums of 10 minutes and of an hour count: rollup_marks beside late_buckets. Of this folder
 * only. */
#ifndef SYMBOL_SERVER_STORE_CLICKHOUSE_MARKS_H
#define SYMBOL_SERVER_STORE_CLICKHOUSE_MARKS_H

#include "symbol-server/store/clickhouse/samples_store.h"

enum { BUCKET_S = 600, HOUR_S = 3600, DAY_S = 86400, LEVEL_10M = 1, LEVEL_1H = 2 };

struct mark {
	uint32_t start; /* unix seconds */
	bool is_made;
	uint64_t version, covered; /* of the newest making */
	uint64_t tokens;           /* there are now; an hour's are those of its buckets */
	int64_t age_s;             /* of the making */
};

struct marks { /* sorted by start */
	struct mark *buckets, *hours;
	size_t bucket_count, bucket_room, hour_count, hour_room;
};

/* Of everything that begins in the range, which is of whole hours. */
bool marks_read(struct clickhouse *client, uint32_t from, uint32_t until, struct marks *marks,
		struct error *err);
void marks_release(struct marks *marks);
/* Nothing was changed after it was made. */
static inline bool mark_is_clean(const struct mark *mark)
{
	return mark->is_made && mark->covered == mark->tokens;
}
/* NULL: there is none. */
const struct mark *marks_find(const struct mark *at, size_t count, uint32_t start);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/clickhouse/marks.h"

#include <stdio.h>
#include <stdlib.h>

#include "symbol-server/store/clickhouse/scope.h"

static struct mark *last_mark(struct mark **at, size_t *count, size_t *room, uint32_t start)
{
	if (*count && (*at)[*count - 1].start == start)
		return &(*at)[*count - 1];
	if (!SCOPE_GROW(*at, *count, *room))
		return NULL;
	(*at)[*count] = (struct mark){.start = start};
	return &(*at)[(*count)++];
}

/* Rows are sorted by start, then level; tokens have level 0. */
static bool keep_mark(void *context, struct row_reader *row)
{
	struct marks *marks = context;
	unsigned level = (unsigned)row_number(row, 1);
	uint32_t start = (uint32_t)row_number(row, 4);
	uint64_t version = row_number(row, 8), covered = row_number(row, 8);
	int64_t age_s = (int64_t)row_number(row, 8);
	struct mark *hour, *mark;

	if (row->is_short)
		return true;
	hour = last_mark(&marks->hours, &marks->hour_count, &marks->hour_room,
			 start / HOUR_S * HOUR_S);
	mark = level == LEVEL_1H ? hour
				 : last_mark(&marks->buckets, &marks->bucket_count,
					     &marks->bucket_room, start);
	row->is_bad = !mark || !hour;
	if (row->is_bad)
		return false;
	if (level) {
		mark->is_made = true;
		mark->version = version;
		mark->covered = covered;
		mark->age_s = age_s;
	} else {
		mark->tokens = covered;
		hour->tokens += covered;
	}
	return true;
}

bool marks_read(struct clickhouse *client, uint32_t from, uint32_t until, struct marks *marks,
		struct error *err)
{
	char sql[1000];

	*marks = (struct marks){0};
	snprintf(sql, sizeof sql,
		 "SELECT level, at, version, covered, age FROM (SELECT level, toUInt32(bucket) AS "
		 "at, version, covered, toInt64(now() - made) AS age FROM (SELECT level, bucket, "
		 "version, covered, made FROM rollup_marks WHERE bucket >= toDateTime(%u) AND "
		 "bucket < toDateTime(%u) ORDER BY covered DESC, version DESC LIMIT 1 BY level, "
		 "bucket) UNION ALL SELECT toUInt8(0) AS level, toUInt32(bucket) AS at, "
		 "toUInt64(0) AS version, toUInt64(uniqExact(token)) AS covered, toInt64(0) AS age "
		 "FROM late_buckets WHERE bucket >= toDateTime(%u) AND bucket < toDateTime(%u) "
		 "GROUP BY bucket) ORDER BY at, level",
		 from, until, from, until);
	if (clickhouse_ask(client,
			   &(struct clickhouse_question){
				   .sql = sql, .row = keep_mark, .context = marks, .total_s = 60},
			   err))
		return true;
	marks_release(marks);
	return false;
}

void marks_release(struct marks *marks)
{
	free(marks->buckets);
	free(marks->hours);
	*marks = (struct marks){0};
}

const struct mark *marks_find(const struct mark *at, size_t count, uint32_t start)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (at[middle].start < start)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && at[low].start == start ? &at[low] : NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a day's dictionary got → journal records in the open group. */
#include "symbol-server/store/sqlite/samples_store.h"

#include <string.h>

enum {
	DEFINITIONS_PER_ENTRY = 64,
	DEFINITIONS_BYTES = 1 << 20, /* a record of definitions is closed when it has so many */
};

static bool flush_definitions(struct sqlite_samples *store, uint32_t day)
{
	if (store->record.failed || !group_add_record(store->group, &store->record))
		return false;
	buffer_clear(&store->record);
	record_add_day(&store->record, day);
	return true;
}

bool store_log_definitions(struct sqlite_samples *store, struct day *day)
{
	struct catalog_mark mark = catalog_mark(day->catalog);
	size_t empty;

	if (!memcmp(&mark, &day->catalog->logged, sizeof mark))
		return true;
	buffer_clear(&store->record);
	record_add_day(&store->record, day->day);
	empty = store->record.length;
	for (unsigned kind = 0; kind < CATALOG_KINDS; kind++) {
		uint32_t first = day->catalog->logged.count[kind];

		first = first ? first : 1;
		while (first < mark.count[kind]) {
			uint32_t count = mark.count[kind] - first;

			if (count > DEFINITIONS_PER_ENTRY)
				count = DEFINITIONS_PER_ENTRY;
			record_add_definitions(&store->record, &store->scratch, day->catalog, kind,
					       first, count);
			if (store->record.length > DEFINITIONS_BYTES &&
			    !flush_definitions(store, day->day))
				return false;
			first += count;
		}
	}
	if (store->record.length > empty && !flush_definitions(store, day->day))
		return false;
	day->catalog->logged = mark;
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/clickhouse/samples_store.h"

#include <stdlib.h>

struct row_group *row_group_new(uint64_t number)
{
	struct row_group *group = calloc(1, sizeof *group);

	if (!group)
		return NULL;
	group->number = number;
	group->first_minute = group->first_late = UINT32_MAX;
	for (unsigned i = 0; i < GROUP_TABLES; i++)
		buffer_init(&group->tables[i], (size_t)GROUP_BYTES_MAX * 4);
	buffer_init(&group->ids, GROUP_BYTES_MAX);
	buffer_init(&group->late, GROUP_BYTES_MAX);
	return group;
}

void row_group_free(struct row_group *group)
{
	if (!group)
		return;
	for (unsigned i = 0; i < GROUP_TABLES; i++)
		buffer_release(&group->tables[i]);
	buffer_release(&group->ids);
	buffer_release(&group->late);
	id_set_release(&group->defined);
	id_set_release(&group->buckets);
	pending_reports_release(&group->pending);
	free(group);
}

size_t row_group_bytes(const struct row_group *group)
{
	size_t bytes = group->ids.length;

	for (unsigned i = 0; i < GROUP_TABLES; i++)
		bytes += group->tables[i].length;
	return bytes;
}

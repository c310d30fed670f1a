/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/rules/untimely_ids.h"

#include <string.h>

#include "common/hash_table.h"

static uint32_t place_of(const uint8_t id[16])
{
	return hash_bytes(id, 16, 0) % UNTIMELY_KEPT;
}

bool untimely_ids_have(const struct untimely_ids *ids, const struct batch_untimely *untimely)
{
	static const uint8_t none[16];

	return memcmp(untimely->id, none, sizeof none) != 0 &&
	       !memcmp(ids->ids[place_of(untimely->id)], untimely->id, 16);
}

void untimely_ids_note(struct untimely_ids *ids, const struct sample_batch *batch)
{
	for (uint32_t i = 0; i < batch->untimely_count; i++)
		memcpy(ids->ids[place_of(batch->untimely[i].id)], batch->untimely[i].id, 16);
}

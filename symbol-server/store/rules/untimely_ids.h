/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles that are counted as lost for their time, when they came: the day of that time may be
 * gone. Who sends one again is not counted again: their ids are kept, the last one of each place.
 */
#ifndef SYMBOL_SERVER_STORE_RULES_UNTIMELY_IDS_H
#define SYMBOL_SERVER_STORE_RULES_UNTIMELY_IDS_H

#include "symbol-server/store/samples.h"

enum { UNTIMELY_KEPT = 4096 };

struct untimely_ids { /* zeroed to begin with */
	uint8_t ids[UNTIMELY_KEPT][16];
};

bool untimely_ids_have(const struct untimely_ids *ids, const struct batch_untimely *untimely);
/* Once the batch is taken. */
void untimely_ids_note(struct untimely_ids *ids, const struct sample_batch *batch);

#endif

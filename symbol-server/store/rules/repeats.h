/* SPDX-License-Identifier: Apache-2.0 */
/* Which profiles of a batch came before: by the window of ids seen lately, or twice in the batch.
 * Both ask under the store's lock. */
#ifndef SYMBOL_SERVER_STORE_RULES_REPEATS_H
#define SYMBOL_SERVER_STORE_RULES_REPEATS_H

#include "symbol-server/store/rules/report_window.h"
#include "symbol-server/store/samples.h"

struct repeats {
	const struct sample_batch *batch; /* borrowed, as the next one */
	bool *is_repeated;                /* one per profile, false to begin with */
	struct hash_table ids;            /* of the batch's profiles */
	unsigned count;
	/* Samples that the sender counts: of the profiles that are new, and of each profile once,
	 * also of a report that came before. */
	uint64_t new_samples, sent_samples;
};

bool profile_has_id(const struct batch_profile *profile);

void repeats_init(struct repeats *repeats, const struct sample_batch *batch, bool *is_repeated);
/* committed: as report_window_find(). ERROR_BUSY: one is being written by another request. */
bool repeats_find(struct repeats *repeats, const struct report_window *window, uint64_t committed,
		  struct error *err);
/* The run of ids from this profile on: it, and the new ones after it whose ids count up. */
struct report_run repeats_run(const struct repeats *repeats, uint32_t first);
bool report_run_has(const struct report_run *run, const struct batch_profile *profile);
/* Every new id goes to the window, with the number of the group that will have it. False: no
 * memory. */
bool repeats_remember(const struct repeats *repeats, struct report_window *window, uint64_t group);
void repeats_release(struct repeats *repeats);

#endif

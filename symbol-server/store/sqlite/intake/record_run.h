/* SPDX-License-Identifier: Apache-2.0 */
/* A record's samples as the run that memory keeps (packed.h). */
#ifndef SYMBOL_SERVER_STORE_SQLITE_INTAKE_RECORD_RUN_H
#define SYMBOL_SERVER_STORE_SQLITE_INTAKE_RECORD_RUN_H

#include "symbol-server/store/sqlite/journal/record.h"

/* What a profile's samples come to; reading stops at the first that refers nowhere. */
struct pair_sums {
	uint32_t strings, stacks; /* defined numbers are below */
	uint32_t pairs;
	uint64_t samples, value;
	struct packed_pair *kept; /* of old records, which are packed here; NULL: not kept */
};

/* Puts the samples into scratch as a run. False: they refer to what is not defined, or there is no
 * room. */
bool record_run(struct buffer *scratch, const struct record_profile *profile,
		struct pair_sums *sums);
/* The same of a record of an earlier server. */
bool record_run_of_raw(struct buffer *scratch, const struct record_profile *profile,
		       struct pair_sums *sums);

#endif

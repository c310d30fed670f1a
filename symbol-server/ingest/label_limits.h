/* SPDX-License-Identifier: Apache-2.0 */
/* How many values a label may have that senders made of an attribute: one that turns out to be
 * another one for every request would be a series each, until no new series is taken any more.
 * Thread-safe. */
#ifndef SYMBOL_SERVER_INGEST_LABEL_LIMITS_H
#define SYMBOL_SERVER_INGEST_LABEL_LIMITS_H

#include <stdint.h>

#include "common/error.h"
#include "symbol-server/store/sample_batch.h"

enum {
	LIMITED_NAMES_MAX = 256,   /* labels of attributes */
	LIMITED_VALUES_MAX = 1024, /* of each, a day (UTC) */
};

struct label_limits;

struct label_limits *label_limits_new(struct error *err);
void label_limits_free(struct label_limits *limits); /* NULL is fine */

/* Takes labels out of the batch's series whose attribute has more values than that. Returns how
 * many. */
uint64_t label_limits_apply(struct label_limits *limits, struct sample_batch *batch,
			    int64_t now_ms);

#endif

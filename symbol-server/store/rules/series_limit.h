/* SPDX-License-Identifier: Apache-2.0 */
/* How many series a tenant may have in a day (--series-limit), and what becomes of more: a host
 * that has its share (sender_shares.h) gets one series for all its further ones, and for those
 * "other" there is a quarter more. */
#ifndef SYMBOL_SERVER_STORE_RULES_SERIES_LIMIT_H
#define SYMBOL_SERVER_STORE_RULES_SERIES_LIMIT_H

#include "symbol-server/store/samples.h"

enum series_verdict { SERIES_OWN, SERIES_OTHER, SERIES_REFUSED };

struct series_asked {
	bool is_known;            /* the day has it already */
	bool is_closed;           /* its host may add nothing, for another reason */
	bool is_other_known;      /* the host's "other" */
	uint64_t host, all, most; /* series that there are of the host, of all; the limit */
};

enum series_verdict series_limit_judge(const struct series_asked *asked);

/* Counts a profile that is refused, and says why with the first one. told NULL: nobody asks. */
void series_limit_tell(struct batch_refusals *told, uint32_t most);

/* The label's value; "": none. */
struct text series_host(const struct batch_series *series);

struct other_series {
	struct batch_label labels[3];
	struct batch_series series; /* of these, borrowed */
};
/* What a host's further series are. host is borrowed. */
void other_series_init(struct other_series *other, struct text host);

#endif

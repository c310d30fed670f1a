/* SPDX-License-Identifier: Apache-2.0 */
/* Why an answer has no samples: nothing that was kept ever had that host, process or label; the
 * type is not recorded; or there is something at another time. Looked up only then, within its own
 * time. */
#ifndef SYMBOL_SERVER_API_NOTHING_H
#define SYMBOL_SERVER_API_NOTHING_H

#include "symbol-server/api/api.h"
#include "symbol-server/api/query_life.h"

struct nothing {
	const char *sentence; /* NULL: there is something, or nothing is known; in the request's
				 arena */
	int64_t from_ms, until_ms; /* of data, of that selection and type; 0: none, or not known */
};

/* An answer has no samples. ERROR_NOT_FOUND: the selector asks for what is not known, and what is.
 */
bool nothing_explain(struct api *api, struct query_life *life, const struct query *asked,
		     struct nothing *out, struct error *err);

/* Labels to group by that none of an answer's series has. ERROR_NOT_FOUND: no label of that name is
 * known. */
bool nothing_check_groups(struct api *api, struct query_life *life, const struct query *asked,
			  const struct series_labels *series, uint32_t count, struct error *err);

#endif

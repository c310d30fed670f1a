/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/label_limiting.h"

#include "symbol-server/ingest/label_limits.h"

void api_limit_labels(struct api *api, struct sample_batch *batch,
		      const struct ingest_rejects *rejects, int64_t now_ms)
{
	api->attributes_left_out += rejects->attributes_left_out;
	api->labels_left_out += rejects->labels_left_out +
				label_limits_apply(api->label_limits, batch, now_ms);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A batch on its way from the reader to the store: its labels within their limits. */
#ifndef SYMBOL_SERVER_API_LABEL_LIMITING_H
#define SYMBOL_SERVER_API_LABEL_LIMITING_H

#include "symbol-server/api/api.h"
#include "symbol-server/ingest/ingest.h"

/* And what was left out is counted for /metrics. */
void api_limit_labels(struct api *api, struct sample_batch *batch,
		      const struct ingest_rejects *rejects, int64_t now_ms);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1/heatmap?by=function. Of this folder only. */
#ifndef SYMBOL_SERVER_API_HEATMAP_FUNCTIONS_H
#define SYMBOL_SERVER_API_HEATMAP_FUNCTIONS_H

#include "symbol-server/api/api.h"

/* Answers, whatever becomes of it. */
void heatmap_functions_get(struct http_request *request, struct http_response *response,
			   struct api *api);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* GET /healthz and /readyz. */
#include <stdio.h>
#include <string.h>

#include "symbol-server/api/answer.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/parameters.h"

void api_healthz_get(struct http_request *request, struct http_response *response, void *context)
{
	(void)request, (void)context;
	answer_text(response, "ok\n");
}

/* Without room for reports questions are answered nevertheless: who asks for=queries sends no
 * reports, a balancer in front of the page for one. */
static void answer_ready(struct http_response *response, const struct samples_counters *samples,
			 bool is_for_queries)
{
	char text[500];

	if (samples->refusing.kind && !is_for_queries) {
		snprintf(text, sizeof text, "reports are refused: %s", samples->refusing.message);
		answer_error(response, 503, text);
	} else if (samples->refusing.kind) {
		snprintf(text, sizeof text, "ready for queries, but reports are refused: %s\n",
			 samples->refusing.message);
		answer_text(response, text);
	} else if (samples->waiting.kind) {
		snprintf(text, sizeof text, "ready, but samples stay in the journal: %s\n",
			 samples->waiting.message);
		answer_text(response, text);
	} else {
		answer_text(response, "ready\n");
	}
}

void api_readyz_get(struct http_request *request, struct http_response *response, void *context)
{
	/* others are no error here: who probes may add what it likes */
	const struct parameters asked = {request, ENDPOINT_readyz};
	struct api *api = context;
	unsigned is_for_queries;
	struct error err = {0};
	struct samples_counters samples;
	char text[200];

	if (!parameter_choice(&asked, "for", &is_for_queries, &err)) {
		answer_failure(response, &err);
	} else if (api->is_stopping) {
		answer_error(response, 503, "the server is stopping");
	} else if (api_is_closed(api, text, sizeof text)) {
		response->retry_after_s = 1;
		answer_error(response, 503, text);
	} else {
		samples_counters(api->samples, &samples);
		answer_ready(response, &samples, is_for_queries);
	}
}

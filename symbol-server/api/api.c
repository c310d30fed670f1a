/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/api.h"

#include <stdio.h>

#include "symbol-server/api/known_modules.h"
#include "symbol-server/ingest/label_limits.h"

bool api_init(struct api *api, struct error *err)
{
	api->known = known_modules_new(err);
	api->label_limits = api->known ? label_limits_new(err) : NULL;
	return api->label_limits != NULL;
}

void api_release(struct api *api)
{
	known_modules_free(api->known);
	label_limits_free(api->label_limits);
	api->known = NULL;
	api->label_limits = NULL;
}

bool api_is_closed(void *context, char *sentence, size_t room)
{
	const struct api *api = context;
	const char *doing = api->doing;

	if (api->is_ready)
		return false;
	snprintf(sentence, room, "the server is still starting: it %s", doing ? doing : "begins");
	return true;
}

void api_limit_labels(struct api *api, struct sample_batch *batch,
		      const struct ingest_rejects *rejects, int64_t now_ms)
{
	api->attributes_left_out += rejects->attributes_left_out;
	api->labels_left_out += rejects->labels_left_out +
				label_limits_apply(api->label_limits, batch, now_ms);
}

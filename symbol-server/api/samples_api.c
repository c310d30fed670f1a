/* SPDX-License-Identifier: Apache-2.0 */
/* DELETE /api/v1/samples: what match selects, of the type or all, in that time. */
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "symbol-server/api/answer.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/formats/json_writer.h"

enum { AHEAD_MS = 10 * 60 * 1000 };

/* Nothing is deleted by a parameter that was forgotten. */
static bool check_meant(const struct parameters *asked, const struct query *query,
			struct error *err)
{
	bool all = false;

	if (!parameter_flag(asked, "all", &all, err))
		return false;
	if (query->selector.count && all)
		return error_set(err, ERROR_OPTION, "either 'match' or 'all=true', not both");
	if (!query->selector.count && !all)
		return error_set(err, ERROR_OPTION,
				 "parameter 'match' selects everything: all=true says that this "
				 "is meant");
	return true;
}

/* Until now: to the last sample, though a sender's clock be a little ahead. */
static void reach_last(const struct parameters *asked, struct samples_query *wanted)
{
	const char *until = parameter_given(asked, "until");

	if (!strcmp(until, "now"))
		wanted->until_ms = unix_time_ms() + AHEAD_MS;
}

/* What stays of what was deleted: who, what and when of. */
static void say_deleted(const struct parameters *asked, const struct samples_deleted *deleted)
{
	const char *match = parameter_given(asked, "match");
	const char *type = parameter_given(asked, "type");

	log_info("samples deleted on request",
		 "peer=%s match='%s' type=%s from_ms=%lld until_ms=%lld samples=%llu",
		 http_request_peer(asked->request), match ? match : "", type ? type : "all",
		 (long long)deleted->from_ms, (long long)deleted->until_ms,
		 (unsigned long long)deleted->samples);
}

void api_samples_delete(struct http_request *request, struct http_response *response, void *context)
{
	struct api *api = context;
	struct parameters asked;
	struct query query = {0};
	struct samples_query wanted;
	struct json json = json_start(&response->body);
	struct error err = {0};
	struct samples_deleted deleted;

	if (!parameters_open(&asked, request, ENDPOINT_samples_delete, &err) ||
	    !parameters_query(&asked, &query, &err) || !check_meant(&asked, &query, &err))
		goto out;
	query_to_samples(&query, &wanted);
	wanted.by_second = false;
	reach_last(&asked, &wanted);
	wanted.is_cancelled = NULL; /* who leaves has asked for it nevertheless */
	if (!samples_delete(api->samples, &wanted, &deleted, &err))
		goto out;
	json_open(&json, '{');
	json_key_uint(&json, "deleted_samples", deleted.samples);
	json_key_int(&json, "from", deleted.from_ms);
	json_key_int(&json, "until", deleted.until_ms);
	json_close(&json, '}');
	buffer_append_char(&response->body, '\n');
	say_deleted(&asked, &deleted);
out:
	if (err.kind != ERROR_NONE)
		answer_failure(response, &err);
	selector_release(&query.selector);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1development/profiles: OTLP in. Answered when the data is on disk. */
#include <string.h>
#include <strings.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/otlp.h"
#include "symbol-server/api/answer.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/known_modules.h"
#include "symbol-server/api/leaf_names.h"
#include "symbol-server/ingest/ingest.h"

enum { CLOCK_RETRY_S = 20 };

static const char clock_sentence[] = "the clock of this server seems to be wrong, not the "
				     "report's time: keep it and send it again";

/* What the answer still needs when the batch is gone. */
struct pending {
	struct api *api;
	struct http_request *request;
	struct ingest_rejects rejects;
	struct batch_refusals refusals;
};

static bool is_protobuf(struct http_request *request)
{
	static const char wanted[] = "application/x-protobuf";
	const char *type = http_request_header(request, "Content-Type");

	return type && !strncasecmp(type, wanted, sizeof(wanted) - 1) &&
	       strchr(" ;", type[sizeof(wanted) - 1]);
}

void api_report_refused(struct api *api, struct http_request *request, int status,
			const char *sentence)
{
	enum report_refusal why = status == 413   ? REFUSED_too_large
				  : status == 415 ? REFUSED_media_type
				  : status == 429 ? REFUSED_busy
				  : status >= 500 ? REFUSED_unavailable
						  : REFUSED_malformed;

	api->reports_refused[why]++;
	if (why == REFUSED_unavailable)
		log_fault_write(&api->not_taken, 1, LOG_WARN, "report refused",
				"status=%d why=\"%s\"", status, sentence);
	else if (why == REFUSED_busy)
		log_info("report refused", "peer=%s status=%d why=\"%s\"",
			 http_request_peer(request), status, sentence);
	else
		log_warn("report refused", "peer=%s status=%d why=\"%s\"",
			 http_request_peer(request), status, sentence);
}

static void refuse(struct api *api, struct http_request *request, struct http_response *response,
		   int status, const char *sentence)
{
	api_report_refused(api, request, status, sentence);
	answer_otlp_error(response, status, sentence);
}

/* What the reader and the store left out, with the first reason. */
static bool put_success(const struct pending *pending, struct buffer *out)
{
	const char *reason = pending->rejects.profiles ? pending->rejects.message
						       : pending->refusals.sentence;

	return otlp_encode_response((int64_t)pending->rejects.profiles + pending->refusals.profiles,
				    reason, out);
}

/* Called by the store's own thread. */
static void stored(void *context, bool accepted, const struct error *err)
{
	struct pending *pending = context;
	struct http_request *request = pending->request;
	struct http_response *response = http_request_response(request);

	response->content_type = "application/x-protobuf";
	if (!accepted)
		refuse(pending->api, request, response, 503,
		       err ? err->message : "the profile could not be stored");
	else if (!put_success(pending, &response->body))
		refuse(pending->api, request, response, 503, "out of memory; try again later");
	else
		log_fault_over(&pending->api->not_taken, "report refused");
	http_request_resume(request);
}

static void read_and_store(struct http_request *request, struct http_response *response,
			   struct api *api, struct pending *pending)
{
	struct bytes body = http_request_body(request);
	int64_t now_ms = unix_time_ms();
	int64_t oldest_ms = api->retention_ms ? now_ms - api->retention_ms : 0;
	struct sample_batch batch = {0};
	struct error err = {0};
	unsigned duplicates;

	if (!ingest_read(body.at, body.length, http_request_peer(request), now_ms, oldest_ms,
			 http_request_scratch(request), &batch, &pending->rejects, &err)) {
		refuse(api, request, response, answer_status(&err, ANSWER_TO_REPORT), err.message);
		return;
	}
	if (server_clock_refuses(&api->clock, api->samples, &batch, &pending->rejects, now_ms)) {
		api->reports_refused[REFUSED_clock]++;
		answer_otlp_error(response, 503, clock_sentence);
		response->retry_after_s = CLOCK_RETRY_S;
		return;
	}
	if (pending->rejects.is_all_untimely) {
		api->reports_refused[REFUSED_untimely]++;
		log_warn("report refused", "peer=%s status=400 why=\"%s\"",
			 http_request_peer(request), pending->rejects.message);
		answer_otlp_error(response, 400, pending->rejects.message);
		return;
	}
	api_limit_labels(api, &batch, &pending->rejects, now_ms);
	batch.tenant = API_TENANT;
	pending->refusals = (struct batch_refusals){0};
	batch.refusals = &pending->refusals;
	known_modules_meet(api, &batch);
	leaf_names_count(api, &batch);
	http_request_suspend(request);
	if (!samples_add(api->samples, &batch, stored, pending, &duplicates, &err)) {
		refuse(api, request, response, answer_status(&err, ANSWER_TO_REPORT), err.message);
		http_request_resume(request);
	}
}

void api_profiles_post(struct http_request *request, struct http_response *response, void *context)
{
	struct pending *pending = arena_alloc(http_request_arena(request), sizeof(*pending));

	if (!is_protobuf(request)) {
		refuse(context, request, response, 415,
		       "Content-Type must be application/x-protobuf: OTLP profiles as "
		       "protobuf, not as JSON");
		return;
	}
	if (!pending) {
		refuse(context, request, response, 503, "out of memory; try again later");
		return;
	}
	pending->api = context;
	pending->request = request;
	read_and_store(request, response, context, pending);
}

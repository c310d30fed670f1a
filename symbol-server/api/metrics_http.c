/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "symbol-server/api/metrics_text.h"

static void put_kind(struct buffer *out, const struct http_counters *http, int kind,
		     const char *name)
{
	uint64_t sum = 0;

	for (int i = 0; i < HTTP_LATENCY_BOUNDS; i++) {
		sum += http->latency[kind].counts[i];
		buffer_printf(out,
			      "farflame_server_http_request_duration_seconds_bucket{kind=\"%s\","
			      "le=\"%g\"} %" PRIu64 "\n",
			      name, http_latency_bounds_ms[i] / 1e3, sum);
	}
	sum += http->latency[kind].counts[HTTP_LATENCY_BOUNDS];
	buffer_printf(
		out,
		"farflame_server_http_request_duration_seconds_bucket{kind=\"%s\",le=\"+Inf\"} "
		"%" PRIu64 "\n"
		"farflame_server_http_request_duration_seconds_sum{kind=\"%s\"} %.3f\n"
		"farflame_server_http_request_duration_seconds_count{kind=\"%s\"} %" PRIu64 "\n",
		name, sum, name, (double)http->latency[kind].sum_ms / 1e3, name, sum);
}

static void put_latency(struct buffer *out, const struct http_counters *http)
{
#define KIND_NAME(name_) #name_,
	static const char *const kinds[] = {HTTP_KINDS(KIND_NAME)};
#undef KIND_NAME

	metrics_describe(out, "http_request_duration_seconds", "histogram",
			 "From a request's last byte to its answer's first: reports of samples, "
			 "queries, others.");
	for (int kind = 0; kind < HTTP_KIND_COUNT; kind++)
		put_kind(out, http, kind, kinds[kind]);
}

static void put_refused(struct buffer *out, const struct http_counters *http)
{
#define REFUSAL_NAME(name_) #name_,
	static const char *const reasons[] = {HTTP_REFUSALS(REFUSAL_NAME)};
#undef REFUSAL_NAME

	metrics_describe(
		out, "http_refused_total", "counter",
		"Requests refused for their head: lines or lengths that could be read in two "
		"ways, a foreign Host, a page of another site, no or another Content-Type.");
	for (int i = 0; i < HTTP_REFUSAL_COUNT; i++)
		buffer_printf(out,
			      "farflame_server_http_refused_total{reason=\"%s\"} %" PRIu64 "\n",
			      reasons[i], http->refused[i]);
}

static void put_closed(struct buffer *out, const struct http_counters *http)
{
#define CLOSING_NAME(name_) #name_,
	static const char *const reasons[] = {HTTP_CLOSINGS(CLOSING_NAME)};
#undef CLOSING_NAME

	metrics_describe(
		out, "http_connections_closed_total", "counter",
		"Connections closed by the server, by what their client did not do in time; "
		"crowded: too many were open, memory: that for bodies was scarce.");
	for (int i = 0; i < HTTP_CLOSING_COUNT; i++)
		buffer_printf(out,
			      "farflame_server_http_connections_closed_total{reason=\"%s\"} "
			      "%" PRIu64 "\n",
			      reasons[i], http->closed[i]);
}

void metrics_put_http(struct buffer *out, struct http_server *server)
{
	struct http_counters http;

	if (!server)
		return;
	http_server_counters(server, &http);
	COUNTER("http_requests_total", http.requests, "Requests whose first line was read.");
	metrics_describe(out, "http_responses_total", "counter", "Responses by class of status.");
	for (int i = 1; i < 6; i++)
		buffer_printf(out,
			      "farflame_server_http_responses_total{class=\"%dxx\"} %" PRIu64 "\n",
			      i, http.responses_by_class[i]);
	put_latency(out, &http);
	GAUGE("queries_running", http.long_running, "Queries that workers are busy with now.");
	GAUGE("queries_waiting", http.long_waiting, "Queries that wait for a worker now.");
	GAUGE("http_requests_waiting", http.waiting,
	      "Requests that wait for a worker now, queries among them.");
	GAUGE("http_connections", http.connections_now, "Connections open now.");
	COUNTER("http_connections_total", http.connections_total, "Connections accepted.");
	GAUGE("http_connections_known", http.connections_known,
	      "Of them, those that have brought reports: the last to go when there are too many.");
	put_closed(out, &http);
	put_refused(out, &http);
	COUNTER("http_too_large_total", http.too_large, "Requests refused as too large.");
	COUNTER("http_streams_total", http.streams,
		"Answers that were sent while they were written.");
	COUNTER("http_streams_broken_total", http.broken_streams,
		"Of these, those that ended early, their client still there.");
	GAUGE("http_streams_spilled_bytes", http.spilled_bytes,
	      "Of answers whose clients read slowly, in files now.");
	COUNTER("http_refused_busy_total", http.refused_busy,
		"Requests refused because of load before they reached a resource.");
	COUNTER("http_received_bytes_total", http.bytes_in, "Bytes of request bodies.");
	COUNTER("http_sent_bytes_total", http.bytes_out, "Bytes of response bodies.");
}

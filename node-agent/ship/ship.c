/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/ship/ship.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/gzip.h"
#include "common/log.h"
#include "common/otlp.h"
#include "node-agent/ship/back_off.h"
#include "node-agent/ship/http_client.h"
#include "node-agent/ship/report_queue.h"
#include "node-agent/ship/thread.h"
#include "node-agent/ship/token.h"
#include "node-agent/ship/uploader.h"
#include "node-agent/ship/verdict.h"

enum {
	HOST_PART_MAX = 64 << 10,
	REPORT_TIME_MS = 60 * 1000, /* for one exchange, however it dribbles */
	DRAIN_RETRY_MS = 200,       /* between tries while the agent is ending */
	STOP_MS = 500,              /* for the thread to notice */
};

enum server_state { SERVER_UNKNOWN, SERVER_THERE, SERVER_AWAY, SERVER_REFUSES };

struct ship {
	struct ship_options options;
	struct url url;
	struct tls_context *tls;
	struct http_client *client;
	struct token token;
	struct uploader *uploader;
	int interrupt_fd;
	struct thread thread;

	/* --- under the thread's lock --- */
	struct report_queue queue;
	struct ship_counters counters;
	int64_t drain_until_ms; /* 0: not ending */

	/* --- the thread's own --- */
	enum server_state server;
	struct back_off back_off;
};

/* --- what is sent --- */

/* The counters of schema/README.md as they stood at the end of the report's interval; queue and
 * refused are the losses of reports before it. */
static size_t fill_counters(const struct ship_report *report, uint64_t lost_queue,
			    uint64_t lost_refused, struct profile_counter *counters)
{
	const struct profile_counter all[] = {
		{"taken", report->taken},
		{"idle", report->idle},
		{"missed", report->missed},
		{"lost.ring_full", report->ring_full},
		{"lost.no_scratch", report->no_scratch},
		{"lost.aggregate_full", report->aggregate_full},
		{"lost.queue", lost_queue},
		{"lost.refused", lost_refused},
	};

	memcpy(counters, all, sizeof all);
	memcpy(counters + sizeof all / sizeof *all, report->more,
	       report->more_count * sizeof *report->more);
	return sizeof all / sizeof *all + report->more_count;
}

/* Appends the compressed host part of the held report. */
static bool make_host_part(struct ship *ship, const struct ship_report *report, struct buffer *gzip,
			   struct error *err)
{
	struct profile_counter counters[8 + SHIP_COUNTERS_MAX];
	struct profile_host host = {0};
	struct buffer plain;
	uint64_t lost_queue, lost_refused, acknowledged_seq;
	bool ok;

	thread_lock(&ship->thread);
	lost_queue = report_queue_lost_before_first(&ship->queue);
	lost_refused = ship->counters.samples_lost_refused;
	acknowledged_seq = ship->counters.acknowledged_seq;
	thread_unlock(&ship->thread);

	ship->options.fill_host(ship->options.context, &host);
	host.report_seq = report->seq;
	host.acknowledged_seq = acknowledged_seq;
	host.start_ns = report->start_ns;
	host.duration_ns = report->duration_ns;
	host.counters = counters;
	host.counter_count = fill_counters(report, lost_queue, lost_refused, counters);
	buffer_init(&plain, HOST_PART_MAX);
	ok = otlp_encode_host(&host, &plain, err) &&
	     gzip_compress(plain.bytes, plain.length, 6, gzip, err);
	buffer_release(&plain);
	return ok;
}

/* sent: bytes of the whole body. */
static bool post(struct ship *ship, const struct ship_report *report, struct http_answer *answer,
		 size_t *sent, struct error *err)
{
	struct http_request request = {.method = "POST",
				       .path = "/v1development/profiles",
				       .content_type = "application/x-protobuf",
				       .content_encoding = "gzip"};
	struct error token_error = {0};
	struct buffer host_part;
	bool ok;

	http_answer_init(answer);
	buffer_init(&host_part, HOST_PART_MAX);
	if (!token_refresh(&ship->token, &token_error))
		log_warn("token not read", "why=\"%s\"", token_error.message);
	request.bearer = token_text(&ship->token);
	ok = make_host_part(ship, report, &host_part, err);
	if (ok) {
		request.pieces[0] = (struct bytes){report->gzip, report->length};
		request.pieces[1] = (struct bytes){host_part.bytes, host_part.length};
		request.deadline_ms = monotonic_ms() + REPORT_TIME_MS;
		*sent = report->length + host_part.length;
		ok = http_client_send(ship->client, &request, answer, err);
	}
	buffer_release(&host_part);
	return ok;
}

/* --- what it came to --- */

/* Says a change of state once; a server that came back hears of all modules again. */
static void set_server(struct ship *ship, enum server_state state, const char *why)
{
	if (ship->server == state)
		return;
	switch (state) {
	case SERVER_THERE:
		log_info("server takes reports", "url=%s", ship->options.server_url);
		break;
	case SERVER_AWAY:
		log_warn("server does not take reports now",
			 "url=%s why=\"%s\" they_wait_up_to_bytes=%zu", ship->options.server_url,
			 why, ship->options.queue_limit_bytes);
		break;
	case SERVER_REFUSES:
		log_error("server refuses reports", "url=%s why=\"%s\" their_samples_are=lost",
			  ship->options.server_url, why);
		break;
	case SERVER_UNKNOWN:
		break;
	}
	ship->server = state;
	if (state == SERVER_THERE)
		uploader_server_returned(ship->uploader);
}

/* False: a 200 whose body is not what this request is answered with: somebody else's. */
static bool read_partial_success(struct ship *ship, const struct http_answer *answer)
{
	char message[200] = "";
	int64_t rejected = 0;

	if (*answer->content_type && answer->body.length &&
	    !strstr(answer->content_type, "protobuf"))
		return false;
	if (!otlp_decode_response(answer->body.bytes, answer->body.length, &rejected, message,
				  sizeof message))
		return false;
	if (rejected > 0) {
		log_warn("server refused profiles", "profiles=%" PRId64 " why=\"%s\"", rejected,
			 message);
		thread_lock(&ship->thread);
		ship->counters.profiles_refused += (uint64_t)rejected;
		thread_unlock(&ship->thread);
	}
	return true;
}

static enum verdict judge(struct ship *ship, const struct http_answer *answer, char *why,
			  size_t room)
{
	enum verdict verdict = verdict_of(answer);

	verdict_sentence(answer, why, room);
	if (verdict == VERDICT_ARRIVED && !read_partial_success(ship, answer)) {
		snprintf(why, room, "%d, but not with OTLP: is this the right address?",
			 answer->status);
		return VERDICT_RETRY;
	}
	return verdict;
}

/* Under the lock: the held report has left the queue, or goes back to its head. */
static void settle(struct ship *ship, const struct ship_report *report, enum verdict verdict,
		   size_t sent)
{
	struct ship_counters *counters = &ship->counters;

	if (verdict == VERDICT_RETRY) {
		counters->reports_retried++;
		report_queue_let_go(&ship->queue);
		return;
	}
	if (verdict == VERDICT_ARRIVED) {
		counters->reports_sent++;
		counters->bytes_sent += sent;
		counters->samples_sent += report->samples;
		counters->acknowledged_seq = report->seq;
	} else {
		counters->samples_lost_refused += report->samples;
	}
	report_queue_remove(&ship->queue);
	thread_wake(&ship->thread); /* drain() waits for an empty queue */
}

/* Sends the oldest report. Called and returns under the lock. Returns when to go on (0: at once).
 */
static int64_t send_oldest(struct ship *ship, const struct ship_report *report)
{
	static const enum server_state states[] = {
		[VERDICT_ARRIVED] = SERVER_THERE,
		[VERDICT_RETRY] = SERVER_AWAY,
		[VERDICT_REFUSED] = SERVER_REFUSES,
	};
	struct http_answer answer;
	struct error err = {0};
	char why[sizeof err.message];
	enum verdict verdict = VERDICT_RETRY;
	int64_t wait_ms = 0;
	size_t sent = 0;

	thread_unlock(&ship->thread);
	if (post(ship, report, &answer, &sent, &err))
		verdict = judge(ship, &answer, why, sizeof why);
	else
		snprintf(why, sizeof why, "%s", err.message);
	if (err.kind != ERROR_BUSY) /* told to stop: says nothing about the server */
		set_server(ship, states[verdict], why);
	if (verdict == VERDICT_RETRY)
		wait_ms = monotonic_ms() + back_off_next_ms(&ship->back_off, answer.retry_after_s);
	else
		ship->back_off.failures = 0;
	http_answer_release(&answer);
	thread_lock(&ship->thread);
	settle(ship, report, verdict, sent);
	return wait_ms;
}

/* --- the thread --- */

static void run(void *context)
{
	struct ship *ship = context;
	int64_t quiet_until_ms = 0;

	thread_lock(&ship->thread);
	while (!thread_is_stopping(&ship->thread)) {
		int64_t now_ms = monotonic_ms();
		const struct ship_report *report;

		if (ship->drain_until_ms) {
			if (!ship->queue.count || now_ms >= ship->drain_until_ms)
				break;
			if (quiet_until_ms > now_ms + DRAIN_RETRY_MS)
				quiet_until_ms = now_ms + DRAIN_RETRY_MS;
		}
		if (!ship->queue.count) {
			thread_wait(&ship->thread, INT64_MAX);
		} else if (now_ms < quiet_until_ms) {
			thread_wait(&ship->thread, quiet_until_ms);
		} else {
			report = report_queue_hold(&ship->queue);
			quiet_until_ms = send_oldest(ship, report);
		}
	}
	thread_unlock(&ship->thread);
}

static bool open_parts(struct ship *ship, struct error *err)
{
	struct http_client_options client = {.url = &ship->url,
					     .timeout_ms = ship->options.timeout_ms};

	if (!url_parse(ship->options.server_url, &ship->url, err))
		return false;
	if (!token_refresh(&ship->token, err)) {
		err->kind = ERROR_OPTION;
		return error_prefix(err, "--token-file");
	}
	if (ship->url.is_tls && !(ship->tls = tls_context_new(ship->options.ca_file, err)))
		return false;
	ship->interrupt_fd = eventfd(0, EFD_CLOEXEC);
	if (ship->interrupt_fd < 0)
		return error_set_system(err, errno, "eventfd");
	client.tls = ship->tls;
	client.interrupt_fd = ship->interrupt_fd;
	ship->client = http_client_new(&client, err);
	return ship->client;
}

static void release(struct ship *ship)
{
	thread_release(&ship->thread);
	report_queue_release(&ship->queue);
	http_client_free(ship->client);
	tls_context_free(ship->tls);
	if (ship->interrupt_fd >= 0)
		close(ship->interrupt_fd);
	free(ship);
}

struct ship *ship_start(const struct ship_options *options, struct error *err)
{
	struct ship *ship = calloc(1, sizeof *ship);

	if (!ship) {
		error_set(err, ERROR_MEMORY, "no memory for sending");
		return NULL;
	}
	ship->options = *options;
	ship->token.path = options->token_file;
	ship->interrupt_fd = -1;
	report_queue_init(&ship->queue, options->queue_limit_bytes);
	if (!open_parts(ship, err))
		goto fail;
	ship->uploader = uploader_start(&ship->options, &ship->url, ship->tls, err);
	if (!ship->uploader || !thread_start(&ship->thread, "ship", run, ship, err))
		goto fail;
	return ship;
fail:
	uploader_stop(ship->uploader);
	release(ship);
	return NULL;
}

void ship_submit(struct ship *ship, struct ship_report *report)
{
	uint64_t dropped;

	thread_lock(&ship->thread);
	dropped = report_queue_add(&ship->queue, report);
	ship->counters.samples_lost_queue += dropped;
	thread_wake(&ship->thread);
	thread_unlock(&ship->thread);
	if (dropped)
		log_warn("reports dropped", "the_queue_is=full samples=%" PRIu64, dropped);
	*report = (struct ship_report){0};
}

void ship_module(struct ship *ship, struct ship_module *module)
{
	uploader_add(ship->uploader, module);
}

void ship_counters(struct ship *ship, struct ship_counters *out)
{
	thread_lock(&ship->thread);
	*out = ship->counters;
	out->queue_bytes = ship->queue.bytes;
	out->queue_reports = ship->queue.count;
	thread_unlock(&ship->thread);
	uploader_counters(ship->uploader, out);
}

/* Waits until the queue is empty or the time is over; true when nothing is left. */
static void drain(struct ship *ship, int drain_ms)
{
	int64_t until_ms = monotonic_ms() + drain_ms;

	thread_lock(&ship->thread);
	ship->drain_until_ms = until_ms;
	thread_wake(&ship->thread);
	while (ship->queue.count && monotonic_ms() < until_ms)
		thread_wait(&ship->thread, until_ms);
	thread_unlock(&ship->thread);
}

uint64_t ship_stop(struct ship *ship, int drain_ms, struct ship_counters *counters)
{
	struct ship_counters ignored;
	uint64_t left;

	if (!ship)
		return 0;
	drain(ship, drain_ms);
	eventfd_write(ship->interrupt_fd, 1);
	if (!thread_stop(&ship->thread, STOP_MS)) {
		/* Stuck in the resolver: the process is about to end, and with it this. */
		if (counters)
			*counters = ship->counters;
		return report_queue_samples(&ship->queue);
	}
	ship_counters(ship, counters ? counters : &ignored);
	left = report_queue_samples(&ship->queue);
	uploader_stop(ship->uploader);
	release(ship);
	return left;
}

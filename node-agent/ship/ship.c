/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/ship/ship.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/gzip.h"
#include "common/log.h"
#include "common/otlp.h"
#include "node-agent/network/back_off.h"
#include "node-agent/network/network_client.h"
#include "node-agent/ship/report_queue.h"
#include "node-agent/ship/spool.h"
#include "node-agent/ship/thread.h"
#include "node-agent/ship/uploader.h"
#include "node-agent/ship/verdict.h"

enum {
	HOST_PART_MAX = 64 << 10,
	REPORT_TIME_MS = 60 * 1000, /* for one exchange, however it dribbles */
	DRAIN_RETRY_MS = 200,       /* between tries while the agent is ending */
	STOP_MS = 500,              /* for the thread to notice */
	SPOOL_RETRY_MS = 2000,      /* of a disk that took nothing */
};

enum server_state { SERVER_UNKNOWN, SERVER_THERE, SERVER_AWAY, SERVER_REFUSES };

struct ship {
	struct ship_options options;
	struct network *network;
	struct network_client *client;
	struct uploader *uploader;
	struct symbol_finder *finder; /* NULL: nothing has been asked */
	struct thread thread;
	struct log_fault dropped; /* reports, since the queue is full */

	/* --- under the thread's lock --- */
	struct report_queue queue;
	struct ship_counters counters;
	int64_t drain_until_ms; /* 0: not ending */
	bool has_spooled;       /* the spool is not empty */
	bool is_in_spool;       /* the thread uses it, unlocked */
	bool has_ended;         /* the thread has nothing left to do */

	/* --- the thread's own --- */
	enum server_state server;
	struct back_off back_off;
	struct pace pace;
	struct spool *spool; /* NULL: none */
	uint8_t run[16];     /* the agent's id */
	bool is_spool_failing;
	int64_t spool_retry_ms;
};

/* --- what is sent --- */

/* The counters of schema/README.md as they stood at the end of the report's interval; queue,
 * refused and spool are the losses of reports before it. */
static void add_counters(struct ship *ship, const struct ship_report *report,
			 struct spool_report *out)
{
	const struct profile_counter all[] = {
		{"taken", report->taken},
		{"idle", report->idle},
		{"missed", report->missed},
		{"cpus", report->cpus},
		{"lost.ring_full", report->ring_full},
		{"lost.no_scratch", report->no_scratch},
		{"lost.aggregate_full", report->aggregate_full},
		{"lost.queue", report_queue_lost_before_first(&ship->queue)},
		{"lost.refused", ship->counters.samples_lost_refused},
		{"lost.spool", ship->spool ? spool_lost(ship->spool) : 0},
	};
	size_t count = sizeof all / sizeof *all;

	_Static_assert(sizeof all / sizeof *all + SHIP_COUNTERS_MAX <= SPOOL_COUNTERS_MAX, "room");
	memcpy(out->counters, all, sizeof all);
	memcpy(out->counters + count, report->more, report->more_count * sizeof *report->more);
	out->host.counters = out->counters;
	out->host.counter_count = count + report->more_count;
}

/* Under the lock: the queue's first report with all that is said of it. Texts are fill_host()'s. */
static void describe(struct ship *ship, const struct ship_report *report, struct spool_report *out)
{
	memset(out, 0, sizeof *out);
	ship->options.fill_host(ship->options.context, &out->host);
	memcpy(out->run, ship->run, sizeof out->run);
	out->samples = report->samples;
	out->body = (struct bytes){report->gzip, report->length};
	out->host.report_seq = report->seq;
	out->host.acknowledged_seq = ship->counters.acknowledged_seq;
	out->host.start_ns = report->start_ns;
	out->host.duration_ns = report->duration_ns;
	add_counters(ship, report, out);
}

/* Appends the compressed host part. */
static bool make_host_part(struct ship *ship, const struct spool_report *report,
			   struct buffer *gzip, struct error *err)
{
	struct profile_host host = report->host, now = {0};
	struct buffer plain;
	bool ok;

	ship->options.fill_host(ship->options.context, &now);
	host.sent_ns = now.sent_ns;
	buffer_init(&plain, HOST_PART_MAX);
	ok = otlp_encode_host(&host, &plain, err) &&
	     gzip_compress(plain.bytes, plain.length, 6, gzip, err);
	buffer_release(&plain);
	return ok;
}

/* sent: bytes of the whole body. */
static bool post(struct ship *ship, const struct spool_report *report, struct http_answer *answer,
		 size_t *sent, struct error *err)
{
	struct http_request request = {.method = "POST",
				       .path = "/v1development/profiles",
				       .content_type = "application/x-protobuf",
				       .content_encoding = "gzip"};
	struct buffer host_part;
	bool ok;

	http_answer_init(answer);
	buffer_init(&host_part, HOST_PART_MAX);
	ok = make_host_part(ship, report, &host_part, err);
	if (ok) {
		request.pieces[0] = report->body;
		request.pieces[1] = (struct bytes){host_part.bytes, host_part.length};
		request.deadline_ms = monotonic_ms() + REPORT_TIME_MS;
		*sent = report->body.length + host_part.length;
		ok = network_client_send(ship->client, &request, answer, err);
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
		log_fault_over(&ship->dropped, "reports dropped");
		log_info("server takes reports", "url=%s", ship->options.server_url);
		break;
	case SERVER_AWAY:
		log_warn("server does not take reports now",
			 "url=%s why=\"%s\" they_wait_up_to_bytes=%" PRIu64,
			 ship->options.server_url, why,
			 ship->spool ? ship->options.spool_limit_bytes
				     : (uint64_t)ship->options.queue_limit_bytes);
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

/* Under the lock: a report of this run or an earlier one has arrived or never will. */
static void count_settled(struct ship *ship, const struct spool_report *report,
			  enum verdict verdict, size_t sent)
{
	struct ship_counters *counters = &ship->counters;
	bool is_own = !memcmp(report->run, ship->run, sizeof ship->run);

	if (verdict == VERDICT_RETRY) {
		counters->reports_retried++;
	} else if (verdict == VERDICT_ARRIVED) {
		counters->reports_sent++;
		counters->bytes_sent += sent;
		counters->samples_sent += report->samples;
		if (is_own && !report->is_remainder)
			counters->acknowledged_seq = report->host.report_seq;
	} else if (is_own) {
		counters->samples_lost_refused += report->samples;
	}
}

/* Called unlocked. Returns when to go on (0: at once). */
static int64_t send_report(struct ship *ship, const struct spool_report *report,
			   enum verdict *verdict, size_t *sent)
{
	static const enum server_state states[] = {
		[VERDICT_ARRIVED] = SERVER_THERE,
		[VERDICT_RETRY] = SERVER_AWAY,
		[VERDICT_REFUSED] = SERVER_REFUSES,
	};
	struct http_answer answer;
	struct error err = {0};
	char why[sizeof err.message];
	int64_t wait_ms = 0;

	*verdict = VERDICT_RETRY;
	*sent = 0;
	if (post(ship, report, &answer, sent, &err))
		*verdict = judge(ship, &answer, why, sizeof why);
	else
		snprintf(why, sizeof why, "%s", err.message);
	if (err.kind != ERROR_BUSY) /* told to stop: says nothing about the server */
		set_server(ship, states[*verdict], why);
	if (*verdict == VERDICT_RETRY)
		wait_ms = monotonic_ms() + back_off_next_ms(&ship->back_off, answer.retry_after_s);
	else
		ship->back_off.failures = 0;
	http_answer_release(&answer);
	return wait_ms;
}

/* Sends the oldest that waits in memory. Called and returns under the lock. */
static int64_t send_queued(struct ship *ship)
{
	const struct ship_report *held = report_queue_hold(&ship->queue);
	struct spool_report report;
	enum verdict verdict;
	int64_t wait_ms;
	size_t sent;

	describe(ship, held, &report);
	thread_unlock(&ship->thread);
	wait_ms = send_report(ship, &report, &verdict, &sent);
	thread_lock(&ship->thread);
	count_settled(ship, &report, verdict, sent);
	if (verdict == VERDICT_RETRY)
		report_queue_let_go(&ship->queue);
	else
		report_queue_remove(&ship->queue);
	return wait_ms;
}

/* --- the spool --- */

/* The lock is not held while the disk is asked. False: the thread was given up, and with it the
 * spool. */
static bool enter_spool(struct ship *ship)
{
	if (!ship->spool)
		return false;
	ship->is_in_spool = true;
	thread_unlock(&ship->thread);
	return true;
}

static void leave_spool(struct ship *ship)
{
	bool has_spooled = spool_first(ship->spool);
	struct spool_counters counters;

	spool_counters(ship->spool, &counters);
	thread_lock(&ship->thread);
	ship->is_in_spool = false;
	ship->has_spooled = has_spooled;
	ship->counters.samples_lost_spool = counters.lost;
	ship->counters.spool_bytes = counters.bytes;
	ship->counters.reports_spooled = counters.added;
	ship->counters.reports_replayed = counters.removed;
}

/* Says a change once. */
static void set_spool_failing(struct ship *ship, bool is_failing, const char *why)
{
	if (is_failing && !ship->is_spool_failing)
		log_warn("spool does not take reports now",
			 "why=\"%s\" they_wait_in_memory_up_to_bytes=%zu", why,
			 ship->options.queue_limit_bytes);
	else if (!is_failing && ship->is_spool_failing)
		log_info("spool takes reports", "directory=\"%s\"", ship->options.spool_directory);
	ship->is_spool_failing = is_failing;
	ship->spool_retry_ms = is_failing ? monotonic_ms() + SPOOL_RETRY_MS : 0;
}

/* Moves the oldest that waits in memory to disk. Called and returns under the lock. */
static bool spool_queued(struct ship *ship)
{
	const struct ship_report *held = report_queue_hold(&ship->queue);
	struct spool_report report;
	struct error err = {0};
	bool ok;

	describe(ship, held, &report);
	if (!enter_spool(ship))
		return false;
	ok = spool_add(ship->spool, &report, monotonic_ms(), &err);
	set_spool_failing(ship, !ok, err.message);
	leave_spool(ship);
	if (ok)
		report_queue_remove(&ship->queue);
	else
		report_queue_let_go(&ship->queue);
	return ok;
}

/* What the server does not take, and what is behind that. Called and returns under the lock. */
static void spool_waiting(struct ship *ship)
{
	bool is_due = ship->has_spooled || ship->server == SERVER_AWAY;

	while (ship->spool && is_due && ship->queue.count &&
	       monotonic_ms() >= ship->spool_retry_ms && spool_queued(ship))
		;
	if (ship->spool && monotonic_ms() >= spool_sync_due_ms(ship->spool) && enter_spool(ship)) {
		spool_sync(ship->spool);
		leave_spool(ship);
	}
}

/* Sends the oldest that waits on disk. Called and returns under the lock. */
static int64_t send_spooled(struct ship *ship)
{
	const struct spool_report *report;
	enum verdict verdict;
	int64_t wait_ms, began_ms = monotonic_ms(), now_ms;
	size_t sent;

	if (!enter_spool(ship))
		return 0;
	report = spool_first(ship->spool);
	leave_spool(ship);
	if (!report)
		return 0;
	thread_unlock(&ship->thread);
	wait_ms = send_report(ship, report, &verdict, &sent);
	now_ms = monotonic_ms();
	thread_lock(&ship->thread);
	if (!enter_spool(ship))
		return 0; /* and with it went the report */
	count_settled(ship, report, verdict, sent);
	if (verdict == VERDICT_RETRY) {
		ship->pace.gap_ms = 0;
	} else {
		wait_ms = now_ms + pace_next_ms(&ship->pace, now_ms - began_ms);
		spool_remove_first(ship->spool,
				   verdict == VERDICT_ARRIVED ? SPOOL_SENT : SPOOL_REFUSED);
	}
	leave_spool(ship);
	return ship->drain_until_ms && verdict != VERDICT_RETRY ? 0 : wait_ms;
}

/* --- the thread --- */

static void wait_until(struct ship *ship, int64_t until_ms)
{
	int64_t sync_ms = ship->spool ? spool_sync_due_ms(ship->spool) : INT64_MAX;

	thread_wait(&ship->thread, sync_ms < until_ms ? sync_ms : until_ms);
}

/* What is on disk is safe there; it goes out before the end only as long as somebody takes it. */
static bool is_drained(const struct ship *ship)
{
	return !ship->queue.count && (!ship->has_spooled || ship->server == SERVER_AWAY);
}

static void run(void *context)
{
	struct ship *ship = context;
	int64_t quiet_until_ms = 0;

	thread_lock(&ship->thread);
	while (!thread_is_stopping(&ship->thread)) {
		int64_t now_ms = monotonic_ms();

		spool_waiting(ship);
		if (ship->drain_until_ms) {
			if (is_drained(ship) || now_ms >= ship->drain_until_ms)
				break;
			if (quiet_until_ms > now_ms + DRAIN_RETRY_MS)
				quiet_until_ms = now_ms + DRAIN_RETRY_MS;
		}
		if (!ship->queue.count && !ship->has_spooled)
			wait_until(ship, INT64_MAX);
		else if (now_ms < quiet_until_ms)
			wait_until(ship, quiet_until_ms);
		else if (ship->has_spooled)
			quiet_until_ms = send_spooled(ship);
		else
			quiet_until_ms = send_queued(ship);
	}
	while (ship->spool && ship->queue.count && spool_queued(ship))
		; /* what is left goes to disk */
	ship->has_ended = true;
	thread_wake(&ship->thread);
	thread_unlock(&ship->thread);
}

/* The thread is stuck, in a file most likely: what waits is kept all the same. */
static void spool_instead(struct ship *ship)
{
	struct spool *spool = ship->spool;
	struct spool_report report;

	thread_lock(&ship->thread);
	if (spool && !ship->is_in_spool) {
		spool_leave_first(spool);
		while (ship->queue.count) {
			describe(ship, report_queue_hold(&ship->queue), &report);
			if (!spool_add(spool, &report, monotonic_ms(), NULL))
				break;
			report_queue_leave(&ship->queue);
		}
		ship->spool = NULL; /* not the thread's any more */
		spool_close(spool);
	}
	thread_unlock(&ship->thread);
}

static bool open_spool(struct ship *ship, struct error *err)
{
	struct spool_options options = {
		.directory = ship->options.spool_directory,
		.limit_bytes = ship->options.spool_limit_bytes,
		.sync_ms = ship->options.spool_sync_ms,
	};
	struct profile_host host = {0};

	ship->options.fill_host(ship->options.context, &host);
	memcpy(ship->run, host.agent_id, sizeof ship->run);
	if (!options.directory)
		return true;
	memcpy(options.run, ship->run, sizeof options.run);
	ship->spool = spool_open(&options, err);
	if (!ship->spool)
		return error_prefix(err, "--spool");
	ship->has_spooled = spool_first(ship->spool);
	if (ship->has_spooled)
		log_info("spool", "directory=\"%s\" has_reports_of=earlier_runs",
			 ship->options.spool_directory);
	return true;
}

static bool open_parts(struct ship *ship, struct error *err)
{
	const struct network_options network = {.server_url = ship->options.server_url,
						.ca_file = ship->options.ca_file,
						.token_file = ship->options.token_file,
						.timeout_ms = ship->options.timeout_ms};

	ship->network = network_start(&network, err);
	ship->client = ship->network ? network_client_new(ship->network, err) : NULL;
	return ship->client;
}

/* False: one of its threads goes on by itself, and has what it needs. */
static bool release(struct ship *ship)
{
	const bool has_finder_ended = symbol_finder_stop(ship->finder);

	if (!uploader_stop(ship->uploader) || !has_finder_ended)
		return false;
	thread_release(&ship->thread);
	report_queue_release(&ship->queue);
	spool_close(ship->spool);
	network_client_free(ship->client);
	network_free(ship->network);
	free(ship);
	return true;
}

struct ship *ship_start(const struct ship_options *options, struct error *err)
{
	const struct sandbox_thread rights = {.reads = options->token_file,
					      .writes_below = options->spool_directory};
	struct ship *ship = calloc(1, sizeof *ship);

	if (!ship) {
		error_set(err, ERROR_MEMORY, "no memory for sending");
		return NULL;
	}
	ship->options = *options;
	report_queue_init(&ship->queue, options->queue_limit_bytes);
	if (!open_parts(ship, err) || !open_spool(ship, err))
		goto fail;
	ship->uploader = uploader_start(&ship->options, ship->network, err);
	if (!ship->uploader || !thread_start(&ship->thread, "ship", &rights, run, ship, err))
		goto fail;
	return ship;
fail:
	release(ship);
	return NULL;
}

void ship_submit(struct ship *ship, struct ship_report *report)
{
	uint64_t dropped;

	network_keep(ship->network);
	thread_lock(&ship->thread);
	dropped = report_queue_add(&ship->queue, report);
	ship->counters.samples_lost_queue += dropped;
	thread_wake(&ship->thread);
	thread_unlock(&ship->thread);
	if (dropped)
		log_fault_write(&ship->dropped, dropped, LOG_WARN, "reports dropped",
				"the_queue_is=full samples=%" PRIu64, dropped);
	*report = (struct ship_report){0};
}

void ship_module(struct ship *ship, struct ship_module *module)
{
	uploader_add(ship->uploader, module);
}

static bool start_finder(struct ship *ship)
{
	struct error err = {0};

	if (!ship->finder &&
	    !(ship->finder = symbol_finder_start(ship->network, ship->options.token_file, &err)))
		log_warn("symbols are not asked for now", "why=\"%s\"", err.message);
	return ship->finder;
}

bool ship_find_symbols(struct ship *ship, const struct build_id *id, const char *const *names,
		       size_t name_count)
{
	return start_finder(ship) && symbol_finder_ask(ship->finder, id, names, name_count);
}

bool ship_take_symbols(struct ship *ship, struct symbol_reply *reply)
{
	return ship->finder && symbol_finder_take(ship->finder, reply);
}

void ship_counters(struct ship *ship, struct ship_counters *out)
{
	thread_lock(&ship->thread);
	*out = ship->counters;
	out->queue_bytes = ship->queue.bytes;
	out->queue_reports = ship->queue.count;
	thread_unlock(&ship->thread);
	uploader_counters(ship->uploader, out);
	out->network_restarts = network_restarts(ship->network);
}

/* Waits until nothing is left to send or the time is over. */
static void drain(struct ship *ship, int drain_ms)
{
	int64_t until_ms = monotonic_ms() + drain_ms;

	network_keep(ship->network);
	thread_lock(&ship->thread);
	ship->drain_until_ms = until_ms;
	thread_wake(&ship->thread);
	while (!ship->has_ended && monotonic_ms() < until_ms)
		thread_wait(&ship->thread, until_ms);
	thread_unlock(&ship->thread);
}

uint64_t ship_stop(struct ship *ship, int drain_ms, struct ship_counters *counters)
{
	struct ship_counters ignored;
	uint64_t left;

	if (!counters)
		counters = &ignored;
	*counters = (struct ship_counters){0};
	if (!ship)
		return 0;
	drain(ship, drain_ms);
	network_interrupt(ship->network);
	if (!thread_stop(&ship->thread, STOP_MS)) {
		/* The process is about to end, and with it the thread. */
		spool_instead(ship);
		*counters = ship->counters;
		counters->is_left_behind = true;
		return report_queue_samples(&ship->queue);
	}
	ship_counters(ship, counters);
	left = report_queue_samples(&ship->queue);
	counters->is_left_behind = !release(ship);
	return left;
}

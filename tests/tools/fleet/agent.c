/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/tools/fleet/agent.h"

#include <err.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HOUR_MS = 3600000, RECONNECT_US = 200000, REQUEST_MAX = 16 << 20 };

/* --- what is reported --- */

static void renew(struct agent *agent)
{
	for (int i = 0; i < 2; i++) {
		uint64_t word = random_next(&agent->random);

		memcpy(agent->id + 8 * i, &word, 8);
	}
	agent->incarnation++;
	agent->seq = agent->acknowledged = agent->taken = agent->lost = agent->idle = 0;
}

void agent_start(struct fleet *fleet, struct agent *agent, uint32_t number)
{
	*agent = (struct agent){.number = number, .fd = -1};
	agent->random = fleet->options.world.seed * 0x10001 + number + 1;
	buffer_init(&agent->body, REQUEST_MAX);
	renew(agent);
	agent->incarnation = 0;
	agent->due_us = fleet->start_us +
			fleet->options.interval_us * number / fleet->options.agents;
	fleet_wake_at(fleet, agent, agent->due_us);
}

static int64_t wall_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Start of the reported interval: now, or spread over the span; some are late. */
static int64_t report_time(struct fleet *fleet, struct agent *agent)
{
	const struct fleet_options *options = &fleet->options;
	int64_t time_ms = wall_ms() - options->interval_us / 1000;

	if (options->span_ms)
		time_ms = options->from_ms +
			  (int64_t)((double)options->span_ms *
				    (agent->done + (double)agent->number / options->agents) /
				    options->reports);
	if (random_percent(&agent->random, options->late)) {
		fleet->counts.late++;
		time_ms -= (int64_t)((double)options->late_ms *
				     (double)(random_next(&agent->random) >> 11) * 0x1p-53);
	}
	return time_ms;
}

static uint64_t fresh_address(struct fleet *fleet, struct agent *agent)
{
	if (!random_percent(&agent->random, fleet->options.fresh))
		return WORLD_FRESH_FIRST;
	fleet->counts.fresh++;
	fleet->fresh_next += 16;
	if (fleet->fresh_next >= WORLD_FRESH_END)
		errx(2, "too many fresh addresses");
	return fleet->fresh_next;
}

static void write_request(struct fleet *fleet, struct agent *agent,
			  const struct body_report *report)
{
	struct buffer body;

	buffer_init(&body, REQUEST_MAX);
	body_write(fleet->bodies[agent->report.template], report, &body);
	buffer_printf(&agent->body,
		      "POST /v1development/profiles HTTP/1.1\r\nHost: localhost\r\n"
		      "Content-Type: application/x-protobuf\r\nContent-Encoding: gzip\r\n"
		      "Content-Length: %zu\r\n\r\n",
		      body.length);
	buffer_append(&agent->body, body.bytes, body.length);
	if (agent->body.failed)
		errx(2, "no memory for a report");
	fleet->counts.bytes += body.length;
	fleet->counts.raw_bytes += body_raw_length(fleet->bodies[agent->report.template]);
	buffer_release(&body);
}

static void make_report(struct fleet *fleet, struct agent *agent)
{
	const struct world_options *options = &fleet->options.world;
	uint32_t app = agent->number % options->apps;
	uint32_t template = random_below(&agent->random, options->templates);
	const struct world_template *from = &fleet->world.apps[app].templates[template];
	uint64_t lost = random_percent(&agent->random, fleet->options.lost)
				? 1 + random_below(&agent->random, 50)
				: 0;
	struct body_report report = {.host = agent->number, .rate_hz = 19};

	agent->seq++;
	agent->lost += lost;
	agent->taken += from->taken + lost;
	agent->idle += 100;
	agent->report_taken = from->taken;
	agent->report_counted = from->counted;
	agent->report = (struct tally_report){
		.host = agent->number,
		.incarnation = agent->incarnation,
		.template = app * options->templates + template,
		.seq = agent->seq,
		.fresh = fresh_address(fleet, agent),
		.taken = agent->taken,
		.lost = agent->lost,
		.time_ms = report_time(fleet, agent),
	};
	report.fresh = agent->report.fresh;
	report.time_ns = (uint64_t)agent->report.time_ms * 1000000;
	report.seq = agent->seq;
	report.acknowledged = agent->acknowledged;
	report.taken = agent->taken;
	report.lost = agent->lost;
	report.idle = agent->idle;
	memcpy(report.agent_id, agent->id, 16);
	for (int i = 0; i < 2; i++) {
		uint64_t word = random_next(&agent->random);

		memcpy(report.id + 8 * i, &word, 8);
	}
	write_request(fleet, agent, &report);
}

/* --- the connection --- */

static void disconnect(struct agent *agent)
{
	if (agent->fd >= 0)
		close(agent->fd);
	agent->fd = -1;
	agent->answer_length = 0;
	agent->is_reused = false;
}

/* Later, on a new connection. */
static void send_again(struct fleet *fleet, struct agent *agent, int64_t at_us)
{
	disconnect(agent);
	agent->state = AGENT_BACKOFF;
	fleet_wake_at(fleet, agent, at_us);
}

static void connect_agent(struct fleet *fleet, struct agent *agent)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
				    .data.u32 = agent->number};
	int one = 1;

	agent->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (agent->fd < 0)
		err(2, "socket");
	setsockopt(agent->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	fleet->counts.connects++;
	if ((connect(agent->fd, (struct sockaddr *)&fleet->options.server,
		     sizeof fleet->options.server) &&
	     errno != EINPROGRESS) ||
	    epoll_ctl(fleet->poll_fd, EPOLL_CTL_ADD, agent->fd, &event))
		send_again(fleet, agent, fleet_now_us() + RECONNECT_US);
}

static void send_some(struct fleet *fleet, struct agent *agent, int64_t now_us)
{
	while (agent->sent < agent->body.length) {
		ssize_t sent = send(agent->fd, agent->body.bytes + agent->sent,
				    agent->body.length - agent->sent, MSG_NOSIGNAL);

		if (sent < 0 && (errno == EAGAIN || errno == ENOTCONN))
			return;
		if (sent < 0) {
			fleet->counts.retries += errno != ECONNREFUSED;
			send_again(fleet, agent, now_us + (agent->is_reused ? 0 : RECONNECT_US));
			return;
		}
		agent->sent += (size_t)sent;
	}
	agent->state = AGENT_WAITING;
}

static void begin_sending(struct fleet *fleet, struct agent *agent, int64_t now_us)
{
	agent->sent = agent->answer_length = 0;
	agent->state = AGENT_SENDING;
	fleet_wake_at(fleet, agent, now_us + fleet->options.timeout_us);
	if (agent->fd < 0)
		connect_agent(fleet, agent);
	if (agent->fd >= 0)
		send_some(fleet, agent, now_us);
}

/* --- answers --- */

static void next_report(struct fleet *fleet, struct agent *agent, int64_t now_us)
{
	buffer_release(&agent->body);
	agent->is_duplicate = false;
	agent->state = AGENT_IDLE;
	agent->done++;
	if (agent->done >= fleet->options.reports || fleet->is_ending) {
		agent->done = fleet->options.reports;
		fleet->finished++;
		fleet_wake_at(fleet, agent, INT64_MAX);
		return;
	}
	agent->due_us = fleet->options.interval_us ? agent->due_us + fleet->options.interval_us
						   : now_us;
	fleet_wake_at(fleet, agent, agent->due_us);
}

static void acknowledged(struct fleet *fleet, struct agent *agent, bool is_partial, int64_t now_us)
{
	const struct world_options *options = &fleet->options.world;
	uint32_t template = agent->report.template;

	fleet_answered(fleet, agent->due_us, now_us - agent->due_us);
	tally_report(fleet->options.tally, &agent->report, is_partial ? 'p' : 'a');
	agent->acknowledged = agent->seq;
	fleet->counts.acknowledged++;
	fleet->counts.partial += is_partial;
	fleet->counts.samples += agent->report_counted;
	fleet->counts.pairs += fleet->world.apps[template / options->templates]
				       .templates[template % options->templates]
				       .sample_count;
	if (random_percent(&agent->random, fleet->options.duplicates)) {
		agent->is_duplicate = true;
		if (random_next(&agent->random) & 1)
			disconnect(agent);
		begin_sending(fleet, agent, now_us);
		return;
	}
	if (random_percent(&agent->random, fleet->options.restarts)) {
		fleet->counts.restarts++;
		disconnect(agent);
		renew(agent);
	}
	next_report(fleet, agent, now_us);
}

/* Its samples are lost, and the next report says so. */
static void refused(struct fleet *fleet, struct agent *agent, int status, int64_t now_us)
{
	tally_report(fleet->options.tally, &agent->report, 'r');
	agent->lost += agent->report_taken;
	fleet->counts.refused++;
	if (!fleet->counts.first_refusal)
		fleet->counts.first_refusal = status;
	next_report(fleet, agent, now_us);
}

static const char *header(const char *head, const char *name)
{
	const char *at = strcasestr(head, name);

	return at ? at + strlen(name) : NULL;
}

/* ExportProfilesServiceResponse {partial_success = 1 {rejected_profiles = 1}}: anything in field 1
 * of field 1. */
static bool says_rejected(const uint8_t *body, size_t length)
{
	return length > 3 && body[0] == 0x0a && body[2] == 0x08 && body[3];
}

/* The text of a google.rpc.Status, or whatever it was: its printable part. */
static void keep_sentence(struct fleet *fleet, const char *body, size_t length)
{
	char *to = fleet->counts.first_busy;
	size_t used = 0;

	if (*to)
		return;
	for (size_t i = 0; i < length && used + 1 < sizeof fleet->counts.first_busy; i++)
		if (body[i] >= ' ' && body[i] < 0x7f && body[i] != '"' && body[i] != '\\')
			to[used++] = body[i];
}

static void answered(struct fleet *fleet, struct agent *agent, size_t head_length, size_t length,
		     int64_t now_us)
{
	int status = atoi(agent->answer + 9);
	const char *again = header(agent->answer, "\r\nRetry-After:");
	const char *close_ = header(agent->answer, "\r\nConnection: close");
	bool is_partial = says_rejected((uint8_t *)agent->answer + head_length, length);
	int64_t wait_us = again ? atoi(again) * INT64_C(1000000) : 1000000;

	agent->answer_length = 0;
	agent->is_reused = true;
	if (close_)
		disconnect(agent);
	if (status == 429 || status == 503) {
		fleet->counts.busy++;
		keep_sentence(fleet, agent->answer + head_length, length);
		agent->state = AGENT_BACKOFF;
		fleet_wake_at(fleet, agent, now_us + wait_us);
	} else if (agent->is_duplicate) {
		fleet->answered_us = now_us;
		fleet->counts.duplicates++;
		if (status != 200 && !fleet->counts.first_refusal)
			fleet->counts.first_refusal = status;
		next_report(fleet, agent, now_us);
	} else if (status == 200) {
		fleet->answered_us = now_us;
		acknowledged(fleet, agent, is_partial, now_us);
	} else {
		refused(fleet, agent, status, now_us);
	}
}

/* An answer longer than the buffer is read only as far as it fits: an error's text. */
static void read_answer(struct fleet *fleet, struct agent *agent, int64_t now_us)
{
	const char *end, *length;

	for (;;) {
		size_t room = sizeof agent->answer - 1 - agent->answer_length;
		ssize_t got = room ? read(agent->fd, agent->answer + agent->answer_length, room)
				   : 0;

		if (got < 0 && errno == EAGAIN)
			return;
		if (got <= 0) {
			if (agent->state == AGENT_IDLE || agent->state == AGENT_BACKOFF) {
				disconnect(agent);
				return;
			}
			fleet->counts.retries++;
			send_again(fleet, agent, now_us + (agent->is_reused ? 0 : RECONNECT_US));
			return;
		}
		agent->answer_length += (size_t)got;
		agent->answer[agent->answer_length] = 0;
		end = strstr(agent->answer, "\r\n\r\n");
		length = end ? header(agent->answer, "\r\nContent-Length:") : NULL;
		if (!end)
			continue;
		end += 4;
		if (length &&
		    agent->answer_length - (size_t)(end - agent->answer) < (size_t)atol(length))
			continue;
		answered(fleet, agent, (size_t)(end - agent->answer),
			 length ? (size_t)atol(length) : 0, now_us);
		return;
	}
}

void agent_ready(struct fleet *fleet, struct agent *agent, uint32_t events, int64_t now_us)
{
	if (agent->fd >= 0 && agent->state == AGENT_SENDING && (events & (EPOLLOUT | EPOLLERR)))
		send_some(fleet, agent, now_us);
	if (agent->fd >= 0 && (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) &&
	    agent->state != AGENT_SENDING)
		read_answer(fleet, agent, now_us);
	else if (agent->fd >= 0 && agent->state == AGENT_SENDING && (events & EPOLLIN))
		read_answer(fleet, agent, now_us); /* refused before it was sent whole */
}

void agent_wake(struct fleet *fleet, struct agent *agent, int64_t now_us)
{
	switch (agent->state) {
	case AGENT_IDLE:
		if (fleet->is_ending) {
			fleet->finished++;
			fleet_wake_at(fleet, agent, INT64_MAX);
			agent->done = fleet->options.reports;
			return;
		}
		make_report(fleet, agent);
		begin_sending(fleet, agent, now_us);
		break;
	case AGENT_BACKOFF:
		begin_sending(fleet, agent, now_us);
		break;
	case AGENT_SENDING:
	case AGENT_WAITING:
		fleet->counts.retries++;
		send_again(fleet, agent, now_us);
		break;
	}
}

void agent_end(struct fleet *fleet, struct agent *agent)
{
	if (agent->body.length && !agent->is_duplicate) {
		tally_report(fleet->options.tally, &agent->report, 'm');
		fleet->counts.unanswered++;
	}
	disconnect(agent);
	buffer_release(&agent->body);
}

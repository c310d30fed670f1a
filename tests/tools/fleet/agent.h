/* SPDX-License-Identifier: Apache-2.0 */
/* One agent: its reports one after the other over its own keep-alive connection, each until it is
 * answered. Driven by the fleet's loop: agent_wake() when its time has come, agent_ready() when its
 * socket has something. */
#ifndef TESTS_TOOLS_FLEET_AGENT_H
#define TESTS_TOOLS_FLEET_AGENT_H

#include <netinet/in.h>

#include "tests/tools/fleet/body.h"
#include "tests/tools/fleet/tally.h"

struct fleet_options {
	struct world_options world;
	struct sockaddr_in server;
	uint32_t agents, reports; /* reports of each agent */
	int64_t interval_us;      /* 0: each report as soon as the last one is answered */
	int64_t timeout_us, settle_us, warmup_us;
	int64_t from_ms, span_ms;                       /* times of reports; span 0: now */
	int64_t late_ms;                                /* how late a late one is at most */
	double late, duplicates, restarts, lost, fresh; /* percent of reports */
	FILE *tally;
	FILE *latencies; /* each answer's; NULL: nobody wants them */
};

enum agent_state {
	AGENT_IDLE,    /* until due_us */
	AGENT_BACKOFF, /* has a report, and waits before it sends it again */
	AGENT_SENDING, /* connecting, too */
	AGENT_WAITING, /* for the answer, until the timeout */
};

struct agent {
	uint32_t number, incarnation;
	enum agent_state state;
	int fd; /* -1: not connected */
	uint64_t random;
	int64_t due_us;  /* of the report at hand, or the next one: when it should be sent */
	int64_t wake_us; /* the one valid entry among the fleet's times */
	uint8_t id[16];
	uint64_t seq, acknowledged, taken, lost, idle;
	uint32_t done; /* reports that are finished */
	struct tally_report report;
	uint64_t report_taken, report_counted;
	struct buffer body; /* request with its header; empty: no report at hand */
	size_t sent;
	bool is_duplicate; /* the report at hand was answered already */
	bool is_reused;    /* something was answered on this connection */
	char answer[1024];
	size_t answer_length;
};

struct fleet_counts {
	uint64_t acknowledged, duplicates, refused, partial, unanswered, restarts, late;
	uint64_t busy;    /* 429 and 503 */
	uint64_t retries; /* reports sent again because the connection or the time was over */
	uint64_t connects, bytes, raw_bytes, samples, pairs, fresh;
	int first_refusal;    /* status */
	char first_busy[120]; /* what the first 429 or 503 said */
};

struct fleet {
	struct fleet_options options;
	struct world world;
	struct body_template **bodies;
	struct agent *agents;
	uint32_t finished; /* agents */
	bool is_ending;    /* no new reports */
	int poll_fd;
	int64_t start_us, answered_us; /* of the last answer that was not "later" */
	uint64_t fresh_next, random;
	struct fleet_counts counts;
	struct fleet_latency {
		int64_t due_us; /* on fleet_now_us()'s clock */
		uint32_t us;    /* from then to the answer */
	} * latencies;          /* after the warm-up */
	uint64_t latency_count, latency_capacity;
	struct fleet_time {
		int64_t us;
		uint32_t agent;
	} * times; /* a heap */
	uint32_t time_count, time_capacity;
};

int64_t fleet_now_us(void); /* CLOCK_MONOTONIC */
void fleet_wake_at(struct fleet *fleet, struct agent *agent, int64_t us);
void fleet_answered(struct fleet *fleet, int64_t due_us, int64_t us);

void agent_start(struct fleet *fleet, struct agent *agent, uint32_t number);
void agent_wake(struct fleet *fleet, struct agent *agent, int64_t now_us);
void agent_ready(struct fleet *fleet, struct agent *agent, uint32_t events, int64_t now_us);
/* At the end: what is at hand counts as maybe. */
void agent_end(struct fleet *fleet, struct agent *agent);

#endif

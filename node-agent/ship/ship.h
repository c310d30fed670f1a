/* SPDX-License-Identifier: Apache-2.0 */
/* To the server, in bounded memory: a queue of encoded reports, one thread that posts them with
 * back-off, announces new build-ids and uploads the files the server asks for. Names, TLS and HTTP
 * are a process' without rights (network.h).
 *
 * With a spool, what the server does not take at the first try goes to disk at once, and so does
 * everything behind it, until the server has taken it all: reports go out in the order in which
 * they were made, those of the agent's earlier runs first. */
#ifndef NODE_AGENT_SHIP_SHIP_H
#define NODE_AGENT_SHIP_SHIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/build_id.h"
#include "common/error.h"
#include "common/profile.h"
#include "node-agent/kernel/stranger_place.h"
#include "node-agent/ship/symbol_finder.h"

struct ship_options {
	const char *server_url;   /* http:// or https://, host, port, optional path prefix */
	const char *ca_file;      /* NULL: the system's certificates */
	const char *token_file;   /* NULL: none; sent as Authorization: Bearer, read again when it
				     changes */
	size_t queue_limit_bytes; /* compressed reports waiting; oldest dropped first, counted */
	const char *spool_directory; /* NULL: they wait in memory only; see spool.h */
	uint64_t spool_limit_bytes;
	int64_t spool_sync_ms;
	bool upload_missing; /* --upload missing */
	uint64_t upload_bytes_per_second;
	int timeout_ms; /* connect, and each read or write */
	/* Called on the ship thread just before a report is sent: fills who we are (host, kernel,
	 * agent, rate, labels). What belongs to the report (sequence number, acknowledged one,
	 * interval) and the counters, which include every loss before it, are filled in here.
	 * Borrowed until the next call. */
	void (*fill_host)(void *context, struct profile_host *host);
	void *context;
};

struct ship_counters { /* cumulative */
	uint64_t reports_sent, reports_retried, bytes_sent;
	uint64_t samples_sent;         /* acknowledged with 200 */
	uint64_t samples_lost_queue;   /* dropped because the queue was full */
	uint64_t samples_lost_refused; /* in reports the server answered 4xx to */
	uint64_t samples_lost_spool;   /* dropped from the spool or damaged in it; of all runs */
	uint64_t spool_bytes;          /* now */
	uint64_t reports_spooled,
		reports_replayed;  /* written there; sent from there, of all runs */
	uint64_t profiles_refused; /* in a partial success, which does not say how many samples */
	uint64_t queue_bytes, queue_reports; /* now */
	uint64_t modules_announced, modules_uploaded, upload_bytes, uploads_failed;
	uint64_t upload_files_refused; /* kept here: who runs the program may not read them */
	uint64_t modules_over_limit;   /* new ones not taken because too many are known */
	uint64_t network_restarts;     /* of the process that speaks to the network */
	uint64_t acknowledged_seq;
	bool is_left_behind; /* of the last ones: ship_stop() says what it means */
};

/* A report that is waiting: everything but the host part, encoded and compressed. */
enum { SHIP_COUNTERS_MAX = 144 };

struct ship_report {
	uint8_t *gzip; /* owned; free() */
	size_t length;
	uint64_t seq, samples;
	uint64_t start_ns, duration_ns;
	/* cumulative at the interval's end */
	uint64_t taken, idle, missed, ring_full, no_scratch, aggregate_full;
	uint64_t cpus;                                  /* that are online now */
	struct profile_counter more[SHIP_COUNTERS_MAX]; /* names are static */
	size_t more_count;
};

/* A file the server may ask for. */
struct ship_module {
	struct build_id id; /* GNU id, else htlhash: the server's key */
	bool is_htlhash;
	char name[64]; /* base name */
	int fd;        /* dup()ed by the caller, owned by ship; −1: nothing to upload from here */
	/* Of fd, for when ship has closed it, which it does soon. path: malloc()ed by the caller,
	 * owned by ship; NULL: no place. */
	struct stranger_place place;
	/* When fd is −1 and text is set: bytes to upload instead (the kernel's kallsyms, the vDSO);
	 * made on the ship thread only when wanted. false: cannot be made. */
	bool (*make_bytes)(void *context, struct buffer *out, struct error *err);
	void *make_context;
	uint64_t samples; /* so far; hottest first */
};

struct ship;

/* server_url and the files' names are borrowed for the ship's life. ERROR_OPTION: a bad address, or
 * a token or certificate file or a spool's directory that cannot be used; ERROR_CONFLICT: another
 * agent has the spool. The server need not be there. */
struct ship *ship_start(const struct ship_options *options, struct error *err);
/* Takes the report's bytes. Never blocks; over the limit the oldest waiting report is dropped. Of
 * the thread that started it: this is also when a process of the network that ended is replaced. */
void ship_submit(struct ship *ship, struct ship_report *report);
/* Takes the module; announced with the next post. Of an id that is known only the count of samples
 * is taken over. */
void ship_module(struct ship *ship, struct ship_module *module);
/* Where functions lie in a file, of the server; as symbol_finder_ask() and symbol_finder_take().
 * One thread's, which is the one that stops the ship. */
bool ship_find_symbols(struct ship *ship, const struct build_id *id, const char *const *names,
		       size_t name_count);
bool ship_take_symbols(struct ship *ship, struct symbol_reply *reply);
void ship_counters(struct ship *ship, struct ship_counters *out);
/* Sends what is queued for at most drain_ms, or leaves it in the spool; then stops the threads and
 * frees everything. Returns the samples that could be neither sent nor kept. counters: the last
 * ones, or NULL; if they say is_left_behind, a thread goes on by itself until the process ends, and
 * what the ship has borrowed must stay. */
uint64_t ship_stop(struct ship *ship, int drain_ms, struct ship_counters *counters);

#endif

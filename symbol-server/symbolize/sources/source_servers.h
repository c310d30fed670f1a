/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of each debuginfod server: who asks it now, whether it is well, which files it
 * fails at; and the thread that asks servers that are closed whether they are back. Inside of
 * symbol_sources. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SOURCES_SOURCE_SERVERS_H
#define SYMBOL_SERVER_SYMBOLIZE_SOURCES_SOURCE_SERVERS_H

#include <limits.h>
#include <pthread.h>

#include "symbol-server/symbolize/sources/source_request.h"
#include "symbol-server/symbolize/sources/symbol_sources.h"

enum {
	SOURCE_SLOTS = 4, /* questions to one server at a time */
	SOURCE_HELD = 64,
	SOURCE_NO_ROOM_MS = 5 * 1000,
};

struct slot {
	bool is_taken;
	int64_t since_ms; /* monotonic */
	int output;
	uint64_t id_hash; /* of what is asked for */
};

struct held_question {
	uint64_t id_hash; /* 0: none */
	unsigned failures;
	int64_t until_ms;
};

struct server {
	char *url;
	char shown[160]; /* without user and password */
	struct slot slots[SOURCE_SLOTS];
	struct held_question held[SOURCE_HELD];
	unsigned next_held;
	bool is_closed;
	bool is_awaited;         /* somebody was turned away since it closed */
	unsigned failures;       /* in a row */
	int64_t closed_until_ms; /* then it is asked whether it is back */
	char sentence[200];
	uint64_t questions, found, not_found, failed, turned_away, bytes;
};

struct symbol_sources {
	pthread_mutex_t lock;   /* of the servers' states and what follows */
	pthread_cond_t changed; /* a slot is free, a server closed or is awaited, the end */
	struct server servers[SOURCES_MAX];
	size_t count;
	int64_t no_room_until_ms, last_return_ms;
	struct source_limits limits;
	char cache[PATH_MAX];
	void (*is_back)(void *context);
	void *context;
	pthread_t prober;
	bool has_prober, stops;
	int stop_fd;
};

/* The next moment at which a module that was turned away may come back; lock held. */
int64_t source_return_time(struct symbol_sources *sources, int64_t not_before_ms);

/* Waits for a turn at a server whose answers flow. FOUND: *slot is taken for what is written to
 * output; CLOSED: the server is not to be asked, err says why; STOPPED. */
enum source_answer source_server_wait(struct symbol_sources *sources, struct server *server,
				      const struct source_question *question, int output,
				      struct slot **slot, int64_t *retry_at_ms, struct error *err);

/* Gives the slot back; what the reply says about the server. */
void source_server_done(struct symbol_sources *sources, struct server *server, struct slot *slot,
			const struct build_id *id, const struct source_reply *reply,
			int64_t *retry_at_ms);

/* Of symbol_sources; ends when sources->stops. */
void *source_servers_probe(void *sources);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/sources/source_servers.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/hash_table.h"
#include "common/log.h"

enum {
	/* A question that brought less than this since it was asked does not keep others waiting.
	 */
	SLOW_MS = 2000,
	SLOW_BYTES_PER_MS = 64,
	/* A server that failed is asked whether it is back after a pause that doubles. */
	CLOSED_FIRST_MS = 2 * 1000,
	CLOSED_MAX_MS = 60 * 1000,
	/* A file that a server fails at again and again while it answers else. */
	HELD_FIRST_MS = 60 * 1000,
	HELD_MAX_MS = 24 * 60 * 60 * 1000,
	/* Modules that are turned away come back one after the other, so that a hundred thousand of
	 * them keep nobody busy. */
	RETURN_MS = 50,
	RETURN_FIRST_MS = 5000,
	WAIT_MS = 250,
};

/* Under the lock. A wall clock that is set back does not make it longer. */
static void wait_for_change(struct symbol_sources *sources, int64_t wait_ms)
{
	struct timespec when;

	clock_gettime(CLOCK_MONOTONIC, &when);
	when.tv_sec += wait_ms / 1000;
	when.tv_nsec += wait_ms % 1000 * 1000000;
	if (when.tv_nsec >= 1000000000) {
		when.tv_sec++;
		when.tv_nsec -= 1000000000;
	}
	pthread_cond_timedwait(&sources->changed, &sources->lock, &when);
}

/* ---- files that one server cannot give; lock held ---- */

static uint64_t hash_of(const struct build_id *id)
{
	return hash_bytes(id->bytes, id->length, 1) | 1;
}

static struct held_question *held_find(struct server *server, const struct build_id *id)
{
	for (size_t i = 0; i < SOURCE_HELD; i++)
		if (server->held[i].id_hash == hash_of(id))
			return &server->held[i];
	return NULL;
}

/* Once may have been the server's fault; from the second time on it is this file that it fails at,
 * and others do not wait for it. */
static void held_add(struct server *server, const struct build_id *id)
{
	struct held_question *held = held_find(server, id);
	int64_t pause = HELD_FIRST_MS;

	if (!held) {
		held = &server->held[server->next_held++ % SOURCE_HELD];
		*held = (struct held_question){.id_hash = hash_of(id)};
	}
	held->failures++;
	for (unsigned i = 2; i < held->failures && pause < HELD_MAX_MS; i++)
		pause *= 2;
	if (held->failures >= 2)
		held->until_ms = unix_time_ms() + (pause < HELD_MAX_MS ? pause : HELD_MAX_MS);
}

static void held_remove(struct server *server, const struct build_id *id)
{
	struct held_question *held = held_find(server, id);

	if (held)
		*held = (struct held_question){0};
}

/* ---- may a server be asked now? ---- */

int64_t source_return_time(struct symbol_sources *sources, int64_t not_before_ms)
{
	int64_t when = sources->last_return_ms + RETURN_MS;

	if (when < not_before_ms)
		when = not_before_ms;
	sources->last_return_ms = when;
	return when;
}

void symbol_sources_forgive(struct symbol_sources *sources, const struct build_id *id)
{
	pthread_mutex_lock(&sources->lock);
	for (size_t i = 0; i < sources->count; i++)
		held_remove(&sources->servers[i], id);
	pthread_mutex_unlock(&sources->lock);
}

static bool is_slow(const struct slot *slot)
{
	int64_t elapsed_ms = monotonic_ms() - slot->since_ms;
	struct stat stat;

	return elapsed_ms > SLOW_MS && !fstat(slot->output, &stat) &&
	       stat.st_size < elapsed_ms * SLOW_BYTES_PER_MS;
}

bool symbol_sources_download(struct symbol_sources *sources, const struct build_id *id,
			     struct source_download *download)
{
	bool found = false;

	pthread_mutex_lock(&sources->lock);
	for (size_t i = 0; !found && i < sources->count * SOURCE_SLOTS; i++) {
		const struct server *server = &sources->servers[i / SOURCE_SLOTS];
		const struct slot *slot = &server->slots[i % SOURCE_SLOTS];
		struct stat stat;

		if (!slot->is_taken || slot->id_hash != hash_of(id) || fstat(slot->output, &stat))
			continue;
		*download = (struct source_download){
			.bytes = (uint64_t)stat.st_size,
			.ms = monotonic_ms() - slot->since_ms,
		};
		memcpy(download->url, server->shown, sizeof(download->url));
		found = true;
	}
	pthread_mutex_unlock(&sources->lock);
	return found;
}

enum admission { ADMITTED, TURNED_AWAY, FULL };

static enum admission turn_away(struct symbol_sources *sources, struct server *server,
				int64_t not_before_ms, int64_t *retry_at_ms)
{
	server->turned_away++;
	*retry_at_ms = source_return_time(sources, not_before_ms);
	return TURNED_AWAY;
}

static enum admission try_slots(struct symbol_sources *sources, struct server *server,
				const struct build_id *id, int output, struct slot **slot,
				int64_t *retry_at_ms, struct error *err)
{
	unsigned slow = 0;

	for (size_t i = 0; i < SOURCE_SLOTS; i++) {
		struct slot *one = &server->slots[i];

		if (!one->is_taken) {
			*one = (struct slot){true, monotonic_ms(), output, hash_of(id)};
			*slot = one;
			server->questions++;
			return ADMITTED;
		}
		slow += is_slow(one);
	}
	if (slow < SOURCE_SLOTS)
		return FULL;
	error_set(err, ERROR_BUSY, "it is slow to answer %d other questions", SOURCE_SLOTS);
	return turn_away(sources, server, unix_time_ms() + RETURN_FIRST_MS, retry_at_ms);
}

/* Lock held. */
static enum admission admit(struct symbol_sources *sources, struct server *server,
			    const struct build_id *id, int output, struct slot **slot,
			    int64_t *retry_at_ms, struct error *err)
{
	const struct held_question *held = held_find(server, id);

	if (server->is_closed) {
		error_set(err, ERROR_REMOTE, "not asked again yet after: %s", server->sentence);
		server->is_awaited = true;
		pthread_cond_broadcast(&sources->changed);
		return turn_away(sources, server, server->closed_until_ms, retry_at_ms);
	}
	if (held && held->until_ms > unix_time_ms()) {
		error_set(err, ERROR_REMOTE, "it failed at this file %u times, and answers else",
			  held->failures);
		*retry_at_ms = held->until_ms;
		server->turned_away++;
		return TURNED_AWAY;
	}
	return try_slots(sources, server, id, output, slot, retry_at_ms, err);
}

static bool is_readable(int fd)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	return poll(&wait, 1, 0) > 0;
}

enum source_answer source_server_wait(struct symbol_sources *sources, struct server *server,
				      const struct source_question *question, int output,
				      struct slot **slot, int64_t *retry_at_ms, struct error *err)
{
	enum source_answer answer = SOURCE_STOPPED;
	enum admission admission;

	pthread_mutex_lock(&sources->lock);
	while ((admission = admit(sources, server, question->id, output, slot, retry_at_ms, err)) ==
	       FULL) {
		if (is_readable(question->stop_fd))
			goto out;
		wait_for_change(sources, WAIT_MS);
	}
	answer = admission == ADMITTED ? SOURCE_FOUND : SOURCE_CLOSED;
out:
	pthread_mutex_unlock(&sources->lock);
	return answer;
}

/* ---- what its answers say about a server; lock held ---- */

static void close_server(struct symbol_sources *sources, struct server *server,
			 const struct source_reply *reply)
{
	int64_t pause = CLOSED_FIRST_MS;

	for (unsigned i = 0; i < server->failures && pause < CLOSED_MAX_MS; i++)
		pause *= 2;
	if (pause > CLOSED_MAX_MS)
		pause = CLOSED_MAX_MS;
	if (pause < reply->retry_after_s * INT64_C(1000))
		pause = reply->retry_after_s * INT64_C(1000);
	if (!server->failures)
		log_warn("debuginfod server does not answer",
			 "url=%s reason=\"%s\" pause_s=%" PRId64, server->shown, reply->sentence,
			 pause / 1000);
	/* Questions asked together that fail together are one failure. */
	if (!server->is_closed) {
		server->failures++;
		server->closed_until_ms = unix_time_ms() + pause;
	}
	server->is_closed = true;
	memcpy(server->sentence, reply->sentence, sizeof(server->sentence));
	pthread_cond_broadcast(&sources->changed);
}

static bool is_failure(const struct source_reply *reply)
{
	return reply->answer == SOURCE_DOWN ||
	       (reply->answer == SOURCE_WRONG_FILE && reply->is_no_elf);
}

/* An answer to a question about a file. */
static void judge(struct symbol_sources *sources, struct server *server, const struct build_id *id,
		  const struct source_reply *reply)
{
	server->bytes += reply->bytes;
	server->found += reply->answer == SOURCE_FOUND;
	server->not_found += reply->answer == SOURCE_NOT_FOUND;
	server->failed += is_failure(reply);
	if (reply->answer == SOURCE_NO_ROOM)
		sources->no_room_until_ms = unix_time_ms() + SOURCE_NO_ROOM_MS;
	if (reply->answer == SOURCE_STOPPED || reply->answer == SOURCE_NO_ROOM)
		return;
	if (is_failure(reply)) {
		if (reply->is_reached && !reply->retry_after_s)
			held_add(server, id);
		server->is_awaited = true; /* by this one */
		close_server(sources, server, reply);
		return;
	}
	held_remove(server, id);
	if (server->failures && !server->is_closed)
		log_info("debuginfod server answers again", "url=%s", server->shown);
	if (!server->is_closed) {
		server->failures = 0;
		*server->sentence = '\0';
	}
}

void source_server_done(struct symbol_sources *sources, struct server *server, struct slot *slot,
			const struct build_id *id, const struct source_reply *reply,
			int64_t *retry_at_ms)
{
	pthread_mutex_lock(&sources->lock);
	slot->is_taken = false;
	judge(sources, server, id, reply);
	*retry_at_ms = is_failure(reply) ? server->closed_until_ms
					 : unix_time_ms() + SOURCE_NO_ROOM_MS;
	pthread_cond_broadcast(&sources->changed);
	pthread_mutex_unlock(&sources->lock);
}

/* ---- the thread that asks servers that are closed whether they are back ---- */

/* The first whose time has come; NULL and how long to wait; lock held. */
static struct server *next_to_probe(struct symbol_sources *sources, int64_t *wait_ms)
{
	*wait_ms = INT_MAX;
	for (size_t i = 0; i < sources->count; i++) {
		struct server *server = &sources->servers[i];
		int64_t left = server->closed_until_ms - unix_time_ms();

		if (!server->is_closed || !server->is_awaited)
			continue;
		if (left <= 0)
			return server;
		if (left < *wait_ms)
			*wait_ms = left;
	}
	return NULL;
}

/* Asks with no lock held; true: it is back. Its failures are counted on until it has answered a
 * real question. */
static bool probe(struct symbol_sources *sources, struct server *server)
{
	struct source_reply reply = {.answer = SOURCE_DOWN, .sentence = "no descriptor to ask it"};
	int output = memfd_create("probe", MFD_CLOEXEC);
	bool is_back;

	pthread_mutex_unlock(&sources->lock);
	if (output >= 0)
		source_request_run(server->url, NULL, SOURCE_DEBUGINFO, &sources->limits, output,
				   sources->stop_fd, &reply);
	if (output >= 0)
		close(output);
	pthread_mutex_lock(&sources->lock);
	is_back = reply.answer == SOURCE_FOUND || reply.answer == SOURCE_NOT_FOUND ||
		  reply.answer == SOURCE_TOO_LARGE;
	server->is_closed = false;
	if (!is_back && !sources->stops) {
		close_server(sources, server, &reply);
		return false;
	}
	server->is_awaited = false;
	return is_back;
}

void *source_servers_probe(void *context)
{
	struct symbol_sources *sources = context;

	pthread_mutex_lock(&sources->lock);
	while (!sources->stops) {
		int64_t wait_ms;
		struct server *server = next_to_probe(sources, &wait_ms);

		if (server && probe(sources, server)) {
			pthread_cond_broadcast(&sources->changed);
			pthread_mutex_unlock(&sources->lock);
			if (sources->is_back)
				sources->is_back(sources->context);
			pthread_mutex_lock(&sources->lock);
		}
		if (server)
			continue;
		wait_for_change(sources, wait_ms);
	}
	pthread_mutex_unlock(&sources->lock);
	return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/ship/symbol_finder.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/log.h"
#include "node-agent/network/network_client.h"
#include "node-agent/ship/thread.h"
#include "node-agent/ship/verdict.h"

enum {
	PATH_BYTES_MAX = 4096,
	ANSWER_TIME_MS = 30 * 1000, /* of one exchange, however it dribbles */
	STOP_MS = 500,              /* for the thread to notice */
};

enum asking { ASKING_NOTHING, ASKING, ASKING_DONE };

struct symbol_finder {
	struct network_client *client;
	struct thread thread;

	/* --- under the lock --- */
	enum asking state;

	/* --- the thread's while ASKING, else the caller's --- */
	const char *const *names;
	size_t name_count;
	struct symbol_reply reply;
};

static bool make_path(const struct symbol_finder *finder, struct buffer *path)
{
	char hex[BUILD_ID_HEX];

	buffer_init(path, PATH_BYTES_MAX);
	buffer_printf(path, "/api/v1/modules/%s/symbols", build_id_format(&finder->reply.id, hex));
	for (size_t i = 0; i < finder->name_count; i++)
		buffer_printf(path, "%s%s", i ? "," : "?name=", finder->names[i]);
	buffer_append(path, "", 1);
	return !path->failed;
}

static enum symbol_outcome read_answer(struct symbol_finder *finder,
				       const struct http_answer *answer, struct error *err)
{
	struct symbol_list *list = &finder->reply.list;

	if (answer->status == 404)
		return SYMBOLS_UNKNOWN;
	switch (verdict_of(answer)) {
	case VERDICT_RETRY:
		return SYMBOLS_LATER;
	case VERDICT_REFUSED:
		verdict_sentence(answer, err->message, sizeof err->message);
		return SYMBOLS_REFUSED;
	case VERDICT_ARRIVED:
		break;
	}
	if (answer->is_truncated)
		error_set(err, ERROR_LIMIT, "the answer is too long");
	if (answer->is_truncated ||
	    !symbol_list_parse((struct bytes){answer->body.bytes, answer->body.length},
			       finder->names, finder->name_count, list, err))
		return SYMBOLS_REFUSED;
	return list->count ? SYMBOLS_FOUND : SYMBOLS_UNKNOWN;
}

static void ask(struct symbol_finder *finder)
{
	struct symbol_reply *reply = &finder->reply;
	struct http_request request = {.method = "GET", .content_type = "text/plain"};
	struct http_answer answer;
	struct error err = {0};
	struct buffer path;
	char hex[BUILD_ID_HEX];

	reply->outcome = SYMBOLS_LATER;
	reply->retry_after_s = -1;
	request.deadline_ms = monotonic_ms() + ANSWER_TIME_MS;
	if (make_path(finder, &path)) {
		request.path = (const char *)path.bytes;
		if (network_client_send(finder->client, &request, &answer, &err)) {
			reply->retry_after_s = answer.retry_after_s;
			reply->outcome = read_answer(finder, &answer, &err);
		}
		http_answer_release(&answer);
	}
	buffer_release(&path);
	if (reply->outcome == SYMBOLS_REFUSED)
		log_warn("where functions lie is not known", "build_id=%s why=\"%s\"",
			 build_id_format(&reply->id, hex), err.message);
}

static void run(void *context)
{
	struct symbol_finder *finder = context;

	thread_lock(&finder->thread);
	while (!thread_is_stopping(&finder->thread)) {
		if (finder->state != ASKING) {
			thread_wait(&finder->thread, INT64_MAX);
			continue;
		}
		thread_unlock(&finder->thread);
		ask(finder);
		thread_lock(&finder->thread);
		finder->state = ASKING_DONE;
	}
	thread_unlock(&finder->thread);
}

struct symbol_finder *symbol_finder_start(struct network *network, const char *token_file,
					  struct error *err)
{
	struct symbol_finder *finder = calloc(1, sizeof *finder);
	const struct sandbox_thread rights = {.reads = token_file};

	if (!finder) {
		error_set(err, ERROR_MEMORY, "no memory to ask for symbols");
		return NULL;
	}
	finder->client = network_client_new(network, err);
	if (finder->client && thread_start(&finder->thread, "symbols", &rights, run, finder, err))
		return finder;
	symbol_finder_stop(finder);
	return NULL;
}

bool symbol_finder_ask(struct symbol_finder *finder, const struct build_id *id,
		       const char *const *names, size_t name_count)
{
	bool is_free;

	thread_lock(&finder->thread);
	is_free = finder->state == ASKING_NOTHING;
	if (is_free) {
		finder->reply = (struct symbol_reply){.id = *id};
		finder->names = names;
		finder->name_count = name_count;
		finder->state = ASKING;
		thread_wake(&finder->thread);
	}
	thread_unlock(&finder->thread);
	return is_free;
}

bool symbol_finder_take(struct symbol_finder *finder, struct symbol_reply *reply)
{
	bool is_done;

	thread_lock(&finder->thread);
	is_done = finder->state == ASKING_DONE;
	if (is_done) {
		*reply = finder->reply;
		finder->state = ASKING_NOTHING;
	}
	thread_unlock(&finder->thread);
	return is_done;
}

bool symbol_finder_stop(struct symbol_finder *finder)
{
	if (!finder)
		return true;
	if (!thread_stop(&finder->thread, STOP_MS))
		return false; /* stuck in a file: the process ends, and with it this */
	thread_release(&finder->thread);
	network_client_free(finder->client);
	free(finder);
	return true;
}

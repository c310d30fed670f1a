/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/http/http_private.h"

#include <stdlib.h>

#include "symbol-server/http/body_inflate.h"

/* The body as the handler wants it. Refuses what cannot be inflated. */
static bool inflate_body(struct http_request *request)
{
	size_t limit = request->route->inflated_limit;
	struct error err = {0};
	struct buffer inflated;

	if (!request->is_gzip)
		return true;
	if (!http_memory_take(request, limit)) {
		http_request_refuse(request, 503,
				    "too many request bodies are being read; try again later");
		return false;
	}
	buffer_init(&inflated, limit);
	if (!body_inflate(http_request_body(request), &inflated, &err)) {
		buffer_release(&inflated);
		if (err.kind == ERROR_LIMIT)
			http_request_refuse(request, 413, "the inflated body is too large");
		else if (err.kind == ERROR_MEMORY)
			http_request_refuse(request, 503, "out of memory; try again later");
		else
			http_request_refuse(request, 400, err.message);
		return false;
	}
	buffer_release(&request->body);
	request->body = inflated;
	http_memory_give(request, limit - inflated.length);
	return true;
}

/* The last hold gone: the answer is complete and the connection goes back to libmicrohttpd. After
 * that the request may be freed at any moment. */
static void release_hold(struct http_request *request)
{
	struct http_server *server = request->server;

	if (atomic_fetch_sub(&request->holds, 1) != 1)
		return;
	if (request->stream) {
		http_stream_end(request);
		return;
	}
	http_response_finish(request);
	request->is_done = true;
	MHD_resume_connection(request->connection);
	atomic_fetch_sub(&server->suspended, 1);
}

struct http_response *http_request_suspend(struct http_request *request)
{
	atomic_fetch_add(&request->holds, 1);
	return &request->response;
}

void http_request_resume(struct http_request *request)
{
	release_hold(request);
}

/* Quick requests first; long ones only while a worker stays free of them. */
static struct http_request *take_request(struct http_queue *queue)
{
	for (int i = 0; i < 2; i++) {
		struct http_request *request = queue->first[i];

		if (!request || (i == 1 && queue->long_running >= queue->long_max))
			continue;
		queue->first[i] = request->next;
		if (!queue->first[i])
			queue->last[i] = &queue->first[i];
		queue->waiting--;
		queue->long_waiting -= i == 1;
		queue->long_running += i == 1;
		return request;
	}
	return NULL;
}

static void empty(struct arena *scratch)
{
	if (scratch->used > HTTP_SCRATCH_KEPT)
		arena_release(scratch);
	else
		arena_clear(scratch);
}

static void *work(void *context)
{
	struct http_server *server = context;
	struct arena scratch;
	struct http_queue *queue = &server->queue;

	arena_init(&scratch, HTTP_SCRATCH_LIMIT);
	pthread_mutex_lock(&queue->lock);
	for (;;) {
		struct http_request *request = take_request(queue);
		bool is_long;

		if (!request && queue->is_stopping)
			break;
		if (!request) {
			pthread_cond_wait(&queue->ready, &queue->lock);
			continue;
		}
		pthread_mutex_unlock(&queue->lock);
		is_long = request->route->may_take_long;
		request->scratch = &scratch;
		if (is_long && http_request_is_gone(request))
			http_request_refuse(request, 503, "nobody waits for this answer any more");
		else if (inflate_body(request))
			request->route->handler(request, &request->response, server->context);
		release_hold(request);
		empty(&scratch);
		pthread_mutex_lock(&queue->lock);
		if (is_long) {
			queue->long_running--;
			pthread_cond_signal(&queue->ready);
		}
	}
	pthread_mutex_unlock(&queue->lock);
	arena_release(&scratch);
	return NULL;
}

bool http_workers_add(struct http_request *request)
{
	struct http_queue *queue = &request->server->queue;
	int line = request->route->may_take_long;
	bool is_full;

	pthread_mutex_lock(&queue->lock);
	is_full = queue->waiting >= HTTP_QUEUE_MAX ||
		  (line == 1 && queue->long_waiting >= HTTP_LONG_QUEUE * queue->long_max);
	if (!is_full) {
		atomic_fetch_add(&request->server->suspended, 1);
		MHD_suspend_connection(request->connection);
		request->holds = 1;
		request->next = NULL;
		*queue->last[line] = request;
		queue->last[line] = &request->next;
		queue->waiting++;
		queue->long_waiting += line == 1;
		pthread_cond_signal(&queue->ready);
	}
	pthread_mutex_unlock(&queue->lock);
	return !is_full;
}

bool http_workers_start(struct http_server *server, struct error *err)
{
	struct http_queue *queue = &server->queue;
	unsigned count = server->options.workers < 2 ? 2 : server->options.workers;

	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->ready, NULL);
	for (int i = 0; i < 2; i++)
		queue->last[i] = &queue->first[i];
	queue->long_max = count - (count + 3) / 4;
	if (server->options.long_running && server->options.long_running < queue->long_max)
		queue->long_max = server->options.long_running;
	queue->threads = calloc(count, sizeof(*queue->threads));
	if (!queue->threads)
		return error_set(err, ERROR_MEMORY, "out of memory");
	for (; queue->thread_count < count; queue->thread_count++) {
		int failed = pthread_create(&queue->threads[queue->thread_count], NULL, work,
					    server);

		if (failed)
			return error_set_system(err, failed, "start a worker thread");
	}
	return true;
}

void http_workers_stop(struct http_server *server)
{
	struct http_queue *queue = &server->queue;

	pthread_mutex_lock(&queue->lock);
	queue->is_stopping = true;
	pthread_cond_broadcast(&queue->ready);
	pthread_mutex_unlock(&queue->lock);
	for (unsigned i = 0; i < queue->thread_count; i++)
		pthread_join(queue->threads[i], NULL);
	free(queue->threads);
	pthread_cond_destroy(&queue->ready);
	pthread_mutex_destroy(&queue->lock);
}

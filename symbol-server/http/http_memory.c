/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/http/http_private.h"

bool http_memory_take(struct http_request *request, size_t bytes)
{
	struct http_server *server = request->server;

	if (atomic_fetch_add(&server->memory, bytes) + bytes > server->options.memory_limit_bytes) {
		atomic_fetch_sub(&server->memory, bytes);
		return false;
	}
	request->held += bytes;
	return true;
}

void http_memory_give(struct http_request *request, size_t bytes)
{
	atomic_fetch_sub(&request->server->memory, bytes);
	request->held -= bytes;
}

bool http_memory_is_pressed(const struct http_server *server)
{
	return server->memory > server->options.memory_limit_bytes / 4;
}

/* The last quarter is for those that are known. Of the second half an address of others has a
 * quarter of all: many agents may come from one, through a proxy. */
static bool is_in_share(const struct http_request *request, size_t bytes)
{
	const struct http_server *server = request->server;
	const struct http_connection *record = request->record;
	size_t limit = server->options.memory_limit_bytes;

	if (record->standing == HTTP_KNOWN)
		return true;
	if (server->memory + bytes > limit - limit / 4)
		return false;
	return server->memory + bytes <= limit / 2 ||
	       server->connections.arriving[record->address] + bytes <= limit / 4;
}

bool http_memory_arrive(struct http_request *request, size_t bytes)
{
	struct http_connection *record = request->record;

	if (!record)
		return http_memory_take(request, bytes);
	if (!is_in_share(request, bytes) || !http_memory_take(request, bytes))
		return false;
	record->arriving += bytes;
	request->server->connections.arriving[record->address] += bytes;
	return true;
}

void http_memory_arrived(struct http_request *request)
{
	struct http_connection *record = request->record;

	if (!record)
		return;
	request->server->connections.arriving[record->address] -= record->arriving;
	record->arriving = 0;
}

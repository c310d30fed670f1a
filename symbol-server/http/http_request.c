/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/http/http_private.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *http_request_path(const struct http_request *request)
{
	return request->path ? request->path : "";
}

const char *http_request_part(const struct http_request *request)
{
	return request->part;
}

const char *http_request_rest(const struct http_request *request)
{
	return request->rest;
}

const char *http_request_query(struct http_request *request, const char *name)
{
	for (unsigned i = 0; i < request->parameters.count; i++)
		if (!strcmp(request->parameters.items[i].name, name))
			return request->parameters.items[i].value;
	return NULL;
}

void http_request_each_query(struct http_request *request,
			     bool (*each)(void *context, const char *name, const char *value),
			     void *context)
{
	for (unsigned i = 0; i < request->parameters.count; i++)
		if (!each(context, request->parameters.items[i].name,
			  request->parameters.items[i].value))
			return;
}

const char *http_request_header(struct http_request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

const char *http_request_peer(struct http_request *request)
{
	const union MHD_ConnectionInfo *info;
	const struct sockaddr *address;

	if (*request->peer)
		return request->peer;
	info = MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	address = info ? info->client_addr : NULL;
	if (address && address->sa_family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, request->peer,
			  sizeof(request->peer));
	else if (address && address->sa_family == AF_INET6)
		inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)address)->sin6_addr,
			  request->peer, sizeof(request->peer));
	return request->peer;
}

struct bytes http_request_body(const struct http_request *request)
{
	return (struct bytes){request->body.bytes, request->body.length};
}

struct arena *http_request_scratch(struct http_request *request)
{
	return request->scratch;
}

struct arena *http_request_arena(struct http_request *request)
{
	return &request->arena;
}

struct http_response *http_request_response(struct http_request *request)
{
	return &request->response;
}

void http_request_set_data(struct http_request *request, void *data)
{
	request->data = data;
}

void *http_request_data(const struct http_request *request)
{
	return request->data;
}

bool http_request_is_gone(const struct http_request *request)
{
	struct pollfd fd = {.events = POLLRDHUP};

	if (request->server->is_cancelling)
		return true;
	if (request->stream)
		return http_stream_is_gone(request);
	if (!request->record)
		return false;
	fd.fd = request->record->fd;
	return poll(&fd, 1, 0) > 0 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

/* "gzip;q=0" refuses it; any other mention accepts it. */
bool http_request_accepts_gzip(struct http_request *request)
{
	const char *accepted = http_request_header(request, "Accept-Encoding");
	const char *gzip = accepted ? strcasestr(accepted, "gzip") : NULL;
	const char *quality;

	if (!gzip)
		return false;
	quality = gzip + 4 + strspn(gzip + 4, " ;");
	return strncasecmp(quality, "q=", 2) || strtod(quality + 2, NULL) > 0;
}

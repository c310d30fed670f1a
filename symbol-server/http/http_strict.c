/* SPDX-License-Identifier: Apache-2.0 */
/* What a proxy in front might read another way, and what a browser sends for another site. */
#include "symbol-server/http/http_private.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { NAME_ROOM = 256 };

/* --- framing --- */

static bool is_token(const char *name, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (name[i] <= ' ' || name[i] == 0x7f || strchr("()<>@,;:\\\"/[]?={}", name[i]))
			return false;
	return length > 0;
}

/* libmicrohttpd has the head in one piece, from the method on, and writes NUL over each CR and LF
 * and over a header's colon: two NULs are the end of a line, one is a bare LF, and what it joined
 * of folded lines is at no header's place. (Its own option for that came with 0.9.77.) */
static bool is_head_whole(const char *method, size_t length, const char *version)
{
	const char *end = method + length, *at = version;

	if (at < method || end - at < 12 || memcmp(at, "HTTP/1.", 7) || at[8] || at[9])
		return false;
	for (at += 10; end - at > 2;) {
		size_t name = strnlen(at, (size_t)(end - at));
		const char *value = at + name + 1;

		if (!is_token(at, name) || value >= end)
			return false;
		at = value + strnlen(value, (size_t)(end - value));
		if (end - at < 4 || at[0] || at[1])
			return false;
		for (; value < at; value++)
			if ((unsigned char)*value < ' ' && *value != '\t')
				return false;
		at += 2;
	}
	return end - at == 2 && !at[0] && !at[1];
}

struct framing {
	unsigned lengths, codings, hosts;
};

static enum MHD_Result count_header(void *context, enum MHD_ValueKind kind, const char *name,
				    const char *value)
{
	struct framing *framing = context;

	(void)kind, (void)value;
	framing->lengths += !strcasecmp(name, "Content-Length");
	framing->codings += !strcasecmp(name, "Transfer-Encoding");
	framing->hosts += !strcasecmp(name, "Host");
	return MHD_YES;
}

/* NULL: nobody can read it in two ways. */
static const char *framing_fault(struct http_request *request, const char *method,
				 const char *version)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		request->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
	const char *coding = http_request_header(request, "Transfer-Encoding");
	struct framing framing = {0};

	if (!info || !is_head_whole(method, info->header_size, version))
		return "the request's head is not lines of HTTP/1 that end in CR LF, each header "
		       "a name, a colon and a value";
	if (version != method + strlen(method) + strlen(request->uri) + 2)
		return "a request's first line has one blank between its parts";
	MHD_get_connection_values(request->connection, MHD_HEADER_KIND, count_header, &framing);
	if (framing.lengths + framing.codings > 1)
		return "a body has one Content-Length, or is chunked";
	if (coding && (strcasecmp(coding, "chunked") || strcmp(version, "HTTP/1.1")))
		return "the only Transfer-Encoding is chunked, of HTTP/1.1";
	if (framing.hosts > 1 || (!framing.hosts && !strcmp(version, "HTTP/1.1")))
		return "a request has one Host";
	return NULL;
}

/* --- Host --- */

/* "name:80", "[::1]:80", "name." → name, in small letters not needed; false: none. */
static bool split_host(const char *text, char name[NAME_ROOM], const char **port)
{
	size_t length = *text == '[' ? strcspn(text, "]") : strcspn(text, ":");
	const char *from = *text == '[' ? text + 1 : text;

	if (*text == '[' && text[length++] != ']')
		return false;
	*port = text + length;
	if (**port && **port != ':')
		return false;
	if (strspn(*port, ":0123456789") != strlen(*port))
		return false;
	length = (size_t)(*port - from) - (*text == '[');
	if (length && from[length - 1] == '.')
		length--;
	if (!length || length >= NAME_ROOM)
		return false;
	memcpy(name, from, length);
	name[length] = '\0';
	return true;
}

static bool is_named(const struct http_server *server, const char *name)
{
	char own[NAME_ROOM] = "", listen[NAME_ROOM];
	const char *port;

	for (size_t i = 0; i < server->options.host_count; i++)
		if (!strcasecmp(name, server->options.hosts[i]) ||
		    !strcmp(server->options.hosts[i], "*"))
			return true;
	if (!strcasecmp(name, "localhost"))
		return true;
	if (split_host(server->options.address, listen, &port) && !strcasecmp(name, listen))
		return true;
	if (gethostname(own, sizeof(own) - 1))
		return false;
	if (!strcasecmp(name, own))
		return true;
	own[strcspn(own, ".")] = '\0';
	return *own && !strcasecmp(name, own);
}

/* An address of this host: loopback, or the one that the client reached. */
static bool is_own_address(const struct http_request *request, const char *name)
{
	struct sockaddr_storage local = {0};
	socklen_t length = sizeof(local);
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&local;
	struct in6_addr asked, own = IN6ADDR_ANY_INIT;
	struct in_addr in4;

	if (inet_pton(AF_INET, name, &in4) == 1) {
		memcpy(&asked, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
		memcpy(asked.s6_addr + 12, &in4, 4);
		if (asked.s6_addr[12] == 127)
			return true;
	} else if (inet_pton(AF_INET6, name, &asked) != 1) {
		return false;
	}
	if (IN6_IS_ADDR_LOOPBACK(&asked))
		return true;
	if (!request->record ||
	    getsockname(request->record->fd, (struct sockaddr *)&local, &length))
		return false;
	if (local.ss_family == AF_INET6) {
		own = in6->sin6_addr;
	} else {
		memcpy(&own, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
		memcpy(own.s6_addr + 12, &((const struct sockaddr_in *)&local)->sin_addr, 4);
	}
	return !memcmp(&own, &asked, sizeof(own));
}

/* --- other sites --- */

static bool is_same_port(const char *one, const char *other)
{
	const char *a = !strcmp(one, ":80") || !strcmp(one, ":443") ? "" : one;
	const char *b = !strcmp(other, ":80") || !strcmp(other, ":443") ? "" : other;

	return !strcmp(a, b);
}

/* A page of ours has the origin of our Host; where a proxy changes Host, of a name of ours. */
static bool is_own_origin(const struct http_request *request, const char *origin, const char *host)
{
	char site[NAME_ROOM], own[NAME_ROOM];
	const char *port, *own_port;

	if (strncmp(origin, "http://", 7) && strncmp(origin, "https://", 8))
		return false;
	if (!split_host(strstr(origin, "//") + 2, site, &port))
		return false;
	if (host && split_host(host, own, &own_port) && !strcasecmp(site, own))
		return is_same_port(port, own_port);
	for (size_t i = 0; i < request->server->options.host_count; i++)
		if (!strcasecmp(site, request->server->options.hosts[i]))
			return true;
	return false;
}

static void refuse(struct http_request *request, enum http_refusal reason, int status,
		   const char *sentence)
{
	if (!request->refused_status)
		request->server->refused[reason]++;
	http_request_refuse(request, status, sentence);
}

bool http_strict_check(struct http_request *request, const char *method, const char *version)
{
	const char *fault = framing_fault(request, method, version), *port;
	const char *host = http_request_header(request, "Host");
	char name[NAME_ROOM];

	if (fault) {
		refuse(request, HTTP_REFUSED_framing, 400, fault);
		return false;
	}
	if (host && (!split_host(host, name, &port) ||
		     (!is_named(request->server, name) && !is_own_address(request, name))))
		refuse(request, HTTP_REFUSED_host, 421,
		       "this server does not go by the name in Host: --allow-host gives it one");
	return true;
}

void http_strict_check_origin(struct http_request *request)
{
	const char *origin = http_request_header(request, "Origin");
	const char *site = http_request_header(request, "Sec-Fetch-Site");
	const struct http_route *route = request->route;

	if (!route || route->any_origin || route->method == HTTP_GET ||
	    route->method == HTTP_OPTIONS)
		return;
	if ((site && !strcasecmp(site, "cross-site")) ||
	    (origin && !is_own_origin(request, origin, http_request_header(request, "Host"))))
		refuse(request, HTTP_REFUSED_origin, 403,
		       "pages of other sites may not change anything here");
}

static bool is_type(const char *type, const char *wanted)
{
	size_t length = strlen(wanted);

	return !strncasecmp(type, wanted, length) &&
	       (!type[length] || strchr(" ;\t", type[length]));
}

void http_strict_check_type(struct http_request *request)
{
	const char *type = http_request_header(request, "Content-Type");
	const struct http_route *route = request->route;
	char sentence[160];

	if (!route || !route->body_type || !type || is_type(type, route->body_type))
		return;
	snprintf(sentence, sizeof(sentence), "Content-Type must be %s", route->body_type);
	refuse(request, HTTP_REFUSED_media_type, 415, sentence);
}

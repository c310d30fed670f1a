/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/net/http_client.h"

#include <curl/curl.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
	REDIRECTS_MAX = 5,
	ERROR_PAGE_MAX = 64 << 10, /* of a body nobody reads; more is not worth a connection */
	AUTHORITIES_MAX = 16 << 20,
};

struct http_client {
	CURL *curl;
	struct curl_blob authorities; /* length 0: the system's */
	char sentence[CURL_ERROR_SIZE];
	const struct http_get *get;
	const struct http_post *post;
	size_t unread;
	bool is_enough; /* the caller, or nobody, wants the rest of the body */
	bool is_given_up;
	bool is_led_astray; /* sent on to an address that is not public */
};

/* Read at the beginning: later the process may have lost the right to. libcurl leaves the variable
 * to its callers. */
static bool read_authorities(struct http_client *client, struct error *err)
{
	const char *path = getenv("SSL_CERT_FILE");
	FILE *file = path && *path ? fopen(path, "re") : NULL;

	if (!path || !*path)
		return true;
	if (!file)
		return error_set_system(err, errno, "SSL_CERT_FILE '%.200s'", path);
	client->authorities.data = malloc(AUTHORITIES_MAX);
	if (client->authorities.data)
		client->authorities.len = fread(client->authorities.data, 1, AUTHORITIES_MAX, file);
	fclose(file);
	return client->authorities.len > 0 ||
	       error_set(err, ERROR_FORMAT, "SSL_CERT_FILE '%.200s' is empty", path);
}

struct http_client *http_client_new(struct error *err)
{
	struct http_client *client = calloc(1, sizeof(*client));

	if (client && !curl_global_init(CURL_GLOBAL_DEFAULT))
		client->curl = curl_easy_init();
	if (client && client->curl && read_authorities(client, err))
		return client;
	if (!client || !client->curl)
		error_set(err, ERROR_MEMORY, "no memory for an HTTP client");
	http_client_free(client);
	return NULL;
}

void http_client_free(struct http_client *client)
{
	if (!client)
		return;
	curl_easy_cleanup(client->curl);
	free(client->authorities.data);
	free(client);
}

static int status_of(struct http_client *client)
{
	long status = 0;

	curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &status);
	return (int)status;
}

static size_t receive(char *bytes, size_t one, size_t length, void *context)
{
	struct http_client *client = context;
	const struct http_get *get = client->get;

	(void)one; /* always 1 */
	if (status_of(client) == 200) {
		client->is_enough = !get->body(get->context, client, bytes, length);
	} else {
		client->unread += length;
		client->is_enough = client->unread > ERROR_PAGE_MAX;
	}
	return client->is_enough ? 0 : length;
}

/* Not of a private, local, shared or otherwise special network (IANA's special-purpose registries).
 */
bool http_address_is_public(const char *text)
{
	static const struct {
		uint32_t network;
		unsigned bits;
	} special[] = {
		{0, 8},           {0x0a000000, 8},  {0x64400000, 10}, {0x7f000000, 8},
		{0xa9fe0000, 16}, {0xac100000, 12}, {0xc0000000, 24}, {0xc0000200, 24},
		{0xc0a80000, 16}, {0xc6120000, 15}, {0xc6336400, 24}, {0xcb007100, 24},
		{0xe0000000, 3},
	};
	struct in6_addr in6;
	struct in_addr in4;
	uint32_t number;

	if (inet_pton(AF_INET, text, &in4) != 1) {
		if (inet_pton(AF_INET6, text, &in6) != 1)
			return false;
		if (!IN6_IS_ADDR_V4MAPPED(&in6)) /* 2000::/3 is all that is given out */
			return in6.s6_addr[0] >> 5 == 1 && memcmp(&in6, "\x20\x01\x0d\xb8", 4) &&
			       memcmp(&in6, "\x20\x02", 2) && memcmp(&in6, "\x20\x01\0\0", 4);
		memcpy(&in4, in6.s6_addr + 12, 4);
	}
	number = ntohl(in4.s_addr);
	for (size_t i = 0; i < sizeof(special) / sizeof(*special); i++)
		if ((number ^ special[i].network) >> (32 - special[i].bits) == 0)
			return false;
	return true;
}

/* Host and port of an http URL, as curl reads it. */
static bool read_place(const char *url, char **host, char **port)
{
	CURLU *parsed = curl_url();
	bool ok = parsed && !curl_url_set(parsed, CURLUPART_URL, url, 0) &&
		  !curl_url_get(parsed, CURLUPART_HOST, host, 0) &&
		  !curl_url_get(parsed, CURLUPART_PORT, port, CURLU_DEFAULT_PORT);

	curl_url_cleanup(parsed);
	return ok;
}

/* Or, a connection being to another port than the URL's, that of a proxy: then it decides. */
static bool is_asked_place(struct http_client *client, int peer_port)
{
	char *host = NULL, *port = NULL, *asked_host = NULL, *asked_port = NULL;
	const char *now = NULL;
	bool is_same;

	curl_easy_getinfo(client->curl, CURLINFO_EFFECTIVE_URL, &now);
	is_same = now && read_place(client->get->url, &asked_host, &asked_port) &&
		  read_place(now, &host, &port) && !strcasecmp(host, asked_host) &&
		  !strcmp(port, asked_port);
	is_same = is_same || (port && atoi(port) != peer_port);
	curl_free(host);
	curl_free(port);
	curl_free(asked_host);
	curl_free(asked_port);
	return is_same;
}

/* The server that was named may be anywhere; where it sends us to has to be in public, or it is
 * itself. Asked with the peer's address, when connected and before anything is sent: whatever a
 * name led to. */
static int check_peer(void *context, char *peer, char *own, int peer_port, int own_port)
{
	struct http_client *client = context;
	long redirects = 0;

	(void)own, (void)own_port;
	curl_easy_getinfo(client->curl, CURLINFO_REDIRECT_COUNT, &redirects);
	if (!redirects || is_asked_place(client, peer_port) || http_address_is_public(peer))
		return CURL_PREREQFUNC_OK;
	client->is_led_astray = true;
	return CURL_PREREQFUNC_ABORT;
}

static bool set_options(struct http_client *client, const struct http_get *get,
			struct curl_slist *headers)
{
	const char *redirects = strncmp(get->url, "https:", 6) != 0 ? "http,https" : "https";
	CURL *curl = client->curl;
	CURLcode rc = CURLE_OK;

	curl_easy_reset(curl);
#define SET(option_, value_) rc = rc ? rc : curl_easy_setopt(curl, CURLOPT_##option_, value_)
	SET(URL, get->url);
	SET(HTTPHEADER, headers);
	SET(USERAGENT, "farflame/" FARFLAME_VERSION);
	SET(PROTOCOLS_STR, "http,https");
	SET(REDIR_PROTOCOLS_STR, redirects);
	SET(FOLLOWLOCATION, 1L);
	SET(MAXREDIRS, (long)REDIRECTS_MAX);
	SET(PREREQFUNCTION, check_peer);
	SET(PREREQDATA, client);
	SET(ACCEPT_ENCODING, ""); /* all it can decompress */
	SET(CONNECTTIMEOUT, (long)get->connect_s);
	SET(TIMEOUT, (long)get->total_s);
	SET(LOW_SPEED_TIME, (long)get->stall_s);
	SET(LOW_SPEED_LIMIT, (long)(get->stall_bytes / get->stall_s));
	SET(NOSIGNAL, 1L);
	SET(PATH_AS_IS, 1L);
	SET(ERRORBUFFER, client->sentence);
	SET(WRITEFUNCTION, receive);
	SET(WRITEDATA, client);
	if (client->authorities.len)
		SET(CAINFO_BLOB, &client->authorities);
#undef SET
	return rc == CURLE_OK;
}

bool http_client_get(struct http_client *client, const struct http_get *get, int *status,
		     bool *is_reached, struct error *err)
{
	struct curl_slist *headers = get->header ? curl_slist_append(NULL, get->header) : NULL;
	curl_off_t connect_us = 0;
	CURLcode rc;
	bool ok = false;

	client->get = get;
	client->unread = 0;
	client->is_enough = client->is_led_astray = false;
	*client->sentence = '\0';
	*status = 0;
	*is_reached = false;
	if (!get->stall_s || (get->header && !headers) || !set_options(client, get, headers)) {
		error_set(err, ERROR_MEMORY, "no memory for a question over HTTP");
		goto out;
	}
	rc = curl_easy_perform(client->curl);
	curl_easy_getinfo(client->curl, CURLINFO_APPCONNECT_TIME_T, &connect_us);
	if (!connect_us && strncmp(get->url, "https:", 6) != 0)
		curl_easy_getinfo(client->curl, CURLINFO_CONNECT_TIME_T, &connect_us);
	*is_reached = connect_us > 0;
	*status = status_of(client);
	if (client->is_led_astray)
		error_set(err, ERROR_REMOTE, "it sends to an address that is not public");
	else
		ok = !rc || client->is_enough ||
		     error_set(err, ERROR_REMOTE, "%s",
			       *client->sentence ? client->sentence : curl_easy_strerror(rc));
out:
	curl_slist_free_all(headers);
	return ok;
}

/* --- POST --- */

/* Of an answer that is a refusal only the beginning is of interest: it says why. */
static bool keep_refusal(struct http_client *client, const char *bytes, size_t length)
{
	const struct http_post *post = client->post;
	size_t kept = client->unread < post->refusal_room ? client->unread : post->refusal_room;
	size_t room = post->refusal_room - kept;

	client->unread += length;
	if (room > 1) {
		size_t more = length < room - 1 ? length : room - 1;

		memcpy(post->refusal + kept, bytes, more);
		post->refusal[kept + more] = '\0';
	}
	return client->unread <= ERROR_PAGE_MAX;
}

static size_t receive_answer(char *bytes, size_t one, size_t length, void *context)
{
	struct http_client *client = context;
	const struct http_post *post = client->post;

	(void)one; /* always 1 */
	if (status_of(client) == 200)
		client->is_enough = post->body && !post->body(post->context, bytes, length);
	else
		client->is_enough = !keep_refusal(client, bytes, length);
	return client->is_enough ? 0 : length;
}

static int watch(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	struct http_client *client = context;
	const struct http_post *post = client->post;

	(void)a, (void)b, (void)c, (void)d;
	client->is_given_up = post->is_cancelled && post->is_cancelled(post->context);
	return client->is_given_up;
}

static bool set_post_options(struct http_client *client, const struct http_post *post,
			     struct curl_slist *headers)
{
	CURL *curl = client->curl;
	CURLcode rc = CURLE_OK;

	curl_easy_reset(curl); /* connections stay */
#define SET(option_, value_) rc = rc ? rc : curl_easy_setopt(curl, CURLOPT_##option_, value_)
	SET(URL, post->url);
	SET(HTTPHEADER, headers);
	SET(USERAGENT, "farflame/" FARFLAME_VERSION);
	SET(PROTOCOLS_STR, "http,https");
	SET(POST, 1L);
	SET(POSTFIELDSIZE_LARGE, (curl_off_t)post->length);
	SET(POSTFIELDS, post->bytes ? post->bytes : "");
	SET(CONNECTTIMEOUT, (long)post->connect_s);
	SET(TIMEOUT, (long)post->total_s);
	SET(TCP_KEEPALIVE, 1L);
	SET(NOSIGNAL, 1L);
	SET(ERRORBUFFER, client->sentence);
	SET(BUFFERSIZE, 256L << 10);
	SET(WRITEFUNCTION, receive_answer);
	SET(WRITEDATA, client);
	SET(NOPROGRESS, 0L);
	SET(XFERINFOFUNCTION, watch);
	SET(XFERINFODATA, client);
	if (client->authorities.len)
		SET(CAINFO_BLOB, &client->authorities);
#undef SET
	return rc == CURLE_OK;
}

static bool append_header(struct curl_slist **headers, const char *header)
{
	struct curl_slist *longer = curl_slist_append(*headers, header);

	*headers = longer ? longer : *headers;
	return longer;
}

/* curl would ask for "100 Continue" first and wait for it. */
static bool make_headers(const struct http_post *post, struct curl_slist **headers)
{
	bool ok = append_header(headers, "Expect:");

	for (unsigned i = 0; ok && i < post->header_count; i++)
		ok = append_header(headers, post->headers[i]);
	return ok;
}

bool http_client_post(struct http_client *client, const struct http_post *post, int *status,
		      struct error *err)
{
	struct curl_slist *headers = NULL;
	bool ok = false;
	CURLcode rc;

	client->post = post;
	client->unread = 0;
	client->is_enough = client->is_given_up = false;
	*client->sentence = '\0';
	*status = 0;
	if (post->refusal_room)
		*post->refusal = '\0';
	if (!make_headers(post, &headers) || !set_post_options(client, post, headers)) {
		error_set(err, ERROR_MEMORY, "no memory for a question over HTTP");
		goto out;
	}
	rc = curl_easy_perform(client->curl);
	*status = status_of(client);
	if (rc && client->is_given_up)
		error_set(err, ERROR_BUSY, "the query was cancelled");
	else
		ok = !rc || client->is_enough ||
		     error_set(err, ERROR_REMOTE, "%s",
			       *client->sentence ? client->sentence : curl_easy_strerror(rc));
out:
	curl_slist_free_all(headers);
	client->post = NULL;
	return ok;
}

const char *http_client_header(struct http_client *client, const char *name)
{
	struct curl_header *header;

	return curl_easy_header(client->curl, name, 0, CURLH_HEADER, -1, &header) ? NULL
										  : header->value;
}

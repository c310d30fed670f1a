/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/net/http_client.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	client->is_enough = false;
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

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
	size_t unread;
	bool is_enough; /* the caller, or nobody, wants the rest of the body */
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

const char *http_client_header(struct http_client *client, const char *name)
{
	struct curl_header *header;

	return curl_easy_header(client->curl, name, 0, CURLH_HEADER, -1, &header) ? NULL
										  : header->value;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/clickhouse/client.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/clock.h"
#include "symbol-server/net/http_client.h"
#include "symbol-server/store/limits.h"

enum {
	IDLE_MAX = 16,
	CONNECT_S = 5,
	TOTAL_S = 300,
	KILL_S = 5,
	INSERT_S = 60,
	URL_MAX = 15 << 10, /* http_max_uri_size is 16 KiB in older versions */
	REFUSAL_BYTES = 1024,
	PENDING_MAX = 64 << 20, /* one row */
};

struct clickhouse {
	struct clickhouse_address address;
	char user_header[160], key_header[300];
	pthread_mutex_t lock;
	struct http_client *idle[IDLE_MAX];
	unsigned idle_count;
	uint64_t questions, random; /* names of questions */
	/* between the parts of a form: rows hold what senders chose, who cannot know it */
	char boundary[40], form_header[96];
};

static void make_boundary(struct clickhouse *client)
{
	uint64_t random[2] = {client->random};

	if (getrandom(random, sizeof random, 0) < 0)
		random[1] = (uint64_t)getpid();
	snprintf(client->boundary, sizeof client->boundary, "%016llx%016llx",
		 (unsigned long long)random[0], (unsigned long long)random[1]);
	snprintf(client->form_header, sizeof client->form_header,
		 "Content-Type: multipart/form-data; boundary=%s", client->boundary);
}

struct clickhouse *clickhouse_new(const char *url, struct error *err)
{
	struct clickhouse *client = calloc(1, sizeof *client);

	if (!client) {
		error_set(err, ERROR_MEMORY, "no memory for ClickHouse");
		return NULL;
	}
	pthread_mutex_init(&client->lock, NULL);
	if (!clickhouse_address_parse(url, &client->address, err)) {
		clickhouse_free(client);
		return NULL;
	}
	if (getrandom(&client->random, sizeof client->random, 0) < 0)
		client->random = (uint64_t)(uintptr_t)client;
	make_boundary(client);
	snprintf(client->user_header, sizeof client->user_header, "X-ClickHouse-User: %s",
		 client->address.user);
	snprintf(client->key_header, sizeof client->key_header, "X-ClickHouse-Key: %s",
		 client->address.password);
	return client;
}

void clickhouse_free(struct clickhouse *client)
{
	if (!client)
		return;
	for (unsigned i = 0; i < client->idle_count; i++)
		http_client_free(client->idle[i]);
	pthread_mutex_destroy(&client->lock);
	explicit_bzero(client, sizeof *client);
	free(client);
}

const struct clickhouse_address *clickhouse_address(const struct clickhouse *client)
{
	return &client->address;
}

static struct http_client *take_connection(struct clickhouse *client, struct error *err)
{
	struct http_client *http = NULL;

	pthread_mutex_lock(&client->lock);
	if (client->idle_count)
		http = client->idle[--client->idle_count];
	pthread_mutex_unlock(&client->lock);
	return http ? http : http_client_new(err);
}

static void give_connection(struct clickhouse *client, struct http_client *http)
{
	pthread_mutex_lock(&client->lock);
	if (client->idle_count < IDLE_MAX) {
		client->idle[client->idle_count++] = http;
		http = NULL;
	}
	pthread_mutex_unlock(&client->lock);
	http_client_free(http);
}

/* --- what is sent --- */

static void put_encoded(struct buffer *url, const char *text)
{
	static const char hex[] = "0123456789ABCDEF";

	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    strchr("-_.~(),*", c)) {
			buffer_append_char(url, (char)c);
		} else {
			buffer_append_char(url, '%');
			buffer_append_char(url, hex[c >> 4]);
			buffer_append_char(url, hex[c & 15]);
		}
	}
}

/* At least a second, which is as fine as ClickHouse counts: the caller's watch ends it before. */
static long long seconds_left(const struct samples_limits *limits)
{
	int64_t gone_ms = limits->started_ms ? monotonic_ms() - limits->started_ms : 0;

	return gone_ms < limits->time_ms ? (long long)(limits->time_ms - gone_ms + 999) / 1000 : 1;
}

/* What groups take beyond a half of the memory goes to ClickHouse's disk. */
static void put_limits(struct buffer *url, const struct samples_limits *limits)
{
	if (limits && limits->time_ms)
		buffer_printf(url, "&max_execution_time=%lld", seconds_left(limits));
	if (limits && limits->bytes)
		buffer_printf(url,
			      "&max_memory_usage=%llu&max_bytes_before_external_group_by=%llu"
			      "&max_bytes_before_external_sort=%llu",
			      (unsigned long long)limits->bytes,
			      (unsigned long long)limits->bytes / 2,
			      (unsigned long long)limits->bytes / 2);
	if (limits && limits->rows)
		buffer_printf(url, "&max_rows_to_read=%llu", (unsigned long long)limits->rows);
}

static void begin_url(const struct clickhouse *client, struct buffer *url, bool with_database)
{
	buffer_init(url, URL_MAX);
	buffer_printf(url, "%s/?", client->address.server);
	if (with_database)
		buffer_printf(url, "database=%s&", client->address.database);
	/* With the last byte of the answer ClickHouse has said that it is whole: otherwise an
	 * error in the middle of it would look like rows. */
	buffer_append_text(url, "wait_end_of_query=1&buffer_size=1048576");
	if (*client->address.cluster)
		buffer_append_text(url, "&insert_distributed_sync=1");
}

/* multipart/form-data (RFC 7578) with files: "External Data for Query Processing". */
static const char *set_name(const struct clickhouse_set *set)
{
	return set->name ? set->name : "wanted";
}

static void put_sets(struct buffer *body, const char *boundary, const struct clickhouse_set *set)
{
	for (; set; set = set->next) {
		buffer_printf(body,
			      "--%s\r\nContent-Disposition: form-data; name=\"%s\"; "
			      "filename=\"%s\"\r\nContent-Type: application/octet-stream\r\n\r\n",
			      boundary, set_name(set), set_name(set));
		buffer_append(body, set->rows->bytes, set->rows->length);
		buffer_append_text(body, "\r\n");
	}
	buffer_printf(body, "--%s--\r\n", boundary);
}

static void put_set_columns(struct buffer *url, const struct clickhouse_set *set)
{
	for (; set; set = set->next) {
		buffer_printf(url, "&%s_format=RowBinary&%s_structure=", set_name(set),
			      set_name(set));
		put_encoded(url, set->columns);
	}
}

/* --- what comes back --- */

struct answer {
	const struct clickhouse_question *question;
	struct buffer pending; /* of a row that has not come whole */
	bool is_stopped, is_bad, is_full;
};

/* Reads whole rows; how many bytes they were. */
static size_t read_rows(struct answer *answer, const uint8_t *bytes, size_t length)
{
	const uint8_t *end = bytes + length, *at = bytes;

	while (at < end && !answer->is_stopped && !answer->is_bad) {
		struct row_reader row = {.at = at, .end = end};
		bool goes_on = answer->question->row(answer->question->context, &row);

		answer->is_bad = row.is_bad;
		if (row.is_short)
			break;
		at = row.at;
		answer->is_stopped = !goes_on;
	}
	return (size_t)(at - bytes);
}

static bool receive(void *context, const void *bytes, size_t length)
{
	struct answer *answer = context;
	struct buffer *pending = &answer->pending;
	size_t used;

	if (!answer->question->row)
		return true;
	if (!pending->length) {
		used = read_rows(answer, bytes, length);
		buffer_append(pending, (const uint8_t *)bytes + used, length - used);
	} else {
		buffer_append(pending, bytes, length);
		if (pending->failed)
			goto out;
		used = read_rows(answer, pending->bytes, pending->length);
		memmove(pending->bytes, pending->bytes + used, pending->length - used);
		pending->length -= used;
	}
out:
	answer->is_full = pending->failed;
	return !answer->is_stopped && !answer->is_bad && !answer->is_full;
}

/* "Code: 159, e.displayText() = DB::Exception: Timeout exceeded: …, e.what() = …" and, since 20.x,
 * "Code: 159. DB::Exception: Timeout exceeded: … (TIMEOUT_EXCEEDED) (version …)". */
static int refusal_code(const char *refusal)
{
	const char *code = strstr(refusal, "Code: ");

	return code ? atoi(code + 6) : 0;
}

static const char *refusal_text(char *refusal)
{
	char *text = strstr(refusal, "DB::Exception: "), *end;

	text = text ? text + 15 : refusal;
	end = strstr(text, ", e.what()");
	if (end)
		*end = '\0';
	end = strstr(text, " (version ");
	if (end)
		*end = '\0';
	for (end = text; *end; end++)
		if ((unsigned char)*end < ' ')
			*end = ' ';
	while (end > text && end[-1] == ' ')
		*--end = '\0';
	return text;
}

static bool set_refusal(const struct clickhouse *client, int status, char *refusal, bool is_query,
			struct error *err)
{
	int code = refusal_code(refusal);

	switch (is_query ? code : 0) {
	case 158: /* TOO_MANY_ROWS */
		return error_set(err, ERROR_LIMIT,
				 "the query would read more rows than its limit: narrow the time "
				 "range or the selection");
	case 159: /* TIMEOUT_EXCEEDED */
	case 160: /* TOO_SLOW */
		return error_set(err, ERROR_LIMIT,
				 "the query took longer than its limit: narrow the time range or "
				 "the selection");
	case 241: /* MEMORY_LIMIT_EXCEEDED */
		return error_set(err, ERROR_LIMIT,
				 "the query needs more memory than its limit: narrow the time "
				 "range or the selection");
	case 394: /* QUERY_WAS_CANCELLED */
		return error_set(err, ERROR_BUSY, "the query was cancelled");
	default:
		break;
	}
	if (code == 202 || code == 241 || code == 252 || code == 396) /* too many queries, parts */
		return error_set(err, ERROR_BUSY, "ClickHouse has too much to do: %.200s",
				 refusal_text(refusal));
	return error_set(err, ERROR_REMOTE, "ClickHouse at %s answered %d: %.200s",
			 client->address.server, status, refusal_text(refusal));
}

/* --- asking --- */

struct request {
	struct buffer url, body;
	const void *bytes; /* of the body, wherever it is */
	size_t length;
	const char *content_type; /* NULL: none */
	uint32_t total_s;
	bool is_query;
};

static bool is_cancelled(void *context)
{
	const struct clickhouse_question *question = ((struct answer *)context)->question;

	return question->is_cancelled && question->is_cancelled(question->cancel_context);
}

static bool send(struct clickhouse *client, struct request *request, struct answer *answer,
		 struct error *err)
{
	struct http_client *http = take_connection(client, err);
	const char *headers[3] = {client->user_header, client->key_header, request->content_type};
	unsigned first = *client->address.user ? 0 : 2;
	char refusal[REFUSAL_BYTES];
	struct error why = {0};
	int status;
	bool ok;

	if (!http)
		return false;
	ok = http_client_post(http,
			      &(struct http_post){
				      .url = (const char *)request->url.bytes,
				      .headers = headers + first,
				      .header_count = (request->content_type ? 3 : 2) - first,
				      .bytes = request->bytes,
				      .length = request->length,
				      .connect_s = CONNECT_S,
				      .total_s = request->total_s,
				      .body = receive,
				      .is_cancelled = is_cancelled,
				      .context = answer,
				      .refusal = refusal,
				      .refusal_room = sizeof refusal,
			      },
			      &status, &why);
	give_connection(client, http);
	if (!ok && why.kind == ERROR_BUSY)
		return error_set(err, why.kind, "%s", why.message);
	if (!ok)
		return error_set(err, ERROR_REMOTE, "ClickHouse at %s does not answer: %s",
				 client->address.server, why.message);
	return status == 200 || set_refusal(client, status, refusal, request->is_query, err);
}

/* ClickHouse of old does not notice that nobody waits for its answer any more. */
static void stop_query(struct clickhouse *client, const char *query_id)
{
	struct clickhouse_question nothing = {0};
	struct answer answer = {.question = &nothing};
	struct request request = {.total_s = KILL_S};
	char sql[160];

	begin_url(client, &request.url, false);
	buffer_append_char(&request.url, '\0');
	request.length = (size_t)snprintf(sql, sizeof sql, "KILL QUERY WHERE query_id = '%s' ASYNC",
					  query_id);
	request.bytes = sql;
	send(client, &request, &answer, NULL);
	buffer_release(&request.url);
}

static void name_question(struct clickhouse *client, char *name, size_t room)
{
	pthread_mutex_lock(&client->lock);
	snprintf(name, room, "farflame-%016llx-%llu", (unsigned long long)client->random,
		 (unsigned long long)++client->questions);
	pthread_mutex_unlock(&client->lock);
}

static bool ask(struct clickhouse *client, const struct clickhouse_question *question,
		bool with_database, struct error *err)
{
	struct request request = {.total_s = question->total_s ? question->total_s : TOTAL_S,
				  .is_query = question->row};
	struct answer answer = {.question = question};
	struct error why = {0};
	char query_id[80];
	bool ok = false;

	name_question(client, query_id, sizeof query_id);
	begin_url(client, &request.url, with_database);
	buffer_printf(&request.url, "&query_id=%s", query_id);
	put_limits(&request.url, question->limits);
	buffer_init(&answer.pending, PENDING_MAX);
	buffer_init(&request.body, SIZE_MAX >> 1);
	if (question->set) {
		put_set_columns(&request.url, question->set);
		buffer_append_text(&request.url, "&query=");
		put_encoded(&request.url, question->sql);
		if (question->row)
			put_encoded(&request.url, " FORMAT RowBinary");
		put_sets(&request.body, client->boundary, question->set);
		request.content_type = client->form_header;
	} else {
		buffer_append_text(&request.body, question->sql);
		if (question->row)
			buffer_append_text(&request.body, " FORMAT RowBinary");
	}
	buffer_append_char(&request.url, '\0');
	request.bytes = request.body.bytes;
	request.length = request.body.length;
	if (request.url.failed || request.body.failed)
		error_set(&why, ERROR_LIMIT, "the question to ClickHouse is too long");
	else
		ok = send(client, &request, &answer, &why);
	if (answer.is_bad || answer.is_full || (ok && !answer.is_stopped && answer.pending.length))
		ok = error_set(&why, ERROR_FORMAT, "ClickHouse at %s sent no rows of ours",
			       client->address.server);
	if ((why.kind == ERROR_BUSY && is_cancelled(&answer)) || answer.is_stopped)
		stop_query(client, query_id);
	if (!ok && err)
		*err = why;
	buffer_release(&answer.pending);
	buffer_release(&request.body);
	buffer_release(&request.url);
	return ok;
}

bool clickhouse_ask(struct clickhouse *client, const struct clickhouse_question *question,
		    struct error *err)
{
	return ask(client, question, true, err);
}

bool clickhouse_run(struct clickhouse *client, const char *sql, struct error *err)
{
	return ask(client, &(struct clickhouse_question){.sql = sql}, true, err);
}

bool clickhouse_run_whole(struct clickhouse *client, const char *sql, struct error *err)
{
	return ask(client, &(struct clickhouse_question){.sql = sql}, false, err);
}

bool clickhouse_insert(struct clickhouse *client, const char *sql, const struct buffer *rows,
		       struct error *err)
{
	struct clickhouse_question nothing = {0};
	struct answer answer = {.question = &nothing};
	struct request request = {
		.bytes = rows->bytes, .length = rows->length, .total_s = INSERT_S};
	bool ok;

	begin_url(client, &request.url, true);
	buffer_append_text(&request.url, "&query=");
	put_encoded(&request.url, sql);
	put_encoded(&request.url, " FORMAT RowBinary");
	buffer_append_char(&request.url, '\0');
	ok = request.url.failed
		     ? error_set(err, ERROR_LIMIT, "the question to ClickHouse is too long")
		     : send(client, &request, &answer, err);
	buffer_release(&request.url);
	return ok;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The table of parameters against what there is besides it: openapi.yaml says the same, in both
 * directions, and a server keeps each row's promise: it reads what is listed, takes each choice
 * and each end of a range, and refuses what lies beyond. */
#include "common/log.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/embedded.h"
#include "symbol-server/symbolize/worker.h"
#include "tests/check.h"
#include "tests/unit/api/one_server.h"

#define ENDPOINT_ROW(name_, method_, path_) {#name_, method_, path_},
static const struct {
	const char *name, *method, *path;
} endpoints[] = {ENDPOINTS(ENDPOINT_ROW)};

static bool takes(const struct parameter_row *row, unsigned endpoint)
{
	return row->endpoints >> endpoint & 1;
}

/* ---- the contract ---- */

enum { ITEMS_MAX = 64, TEXT_BYTES = 4096 };

struct item {
	char name[40], schema[600], description[400];
	bool is_required;
};

/* Of [from, end) from after the line "<indent><title>:" to the next line that is not further in. */
static const char *block(const char *from, const char *end, unsigned indent, const char *title,
			 const char **block_end)
{
	char line[140];
	const char *at, *next;

	snprintf(line, sizeof line, "\n%*s%s:", (int)indent, "", title);
	at = strstr(from, line);
	if (!at || at >= end)
		return NULL;
	at += strlen(line);
	for (next = at; (next = strchr(next, '\n')) && next < end; next++)
		if (strspn(next + 1, " ") <= indent && next[1] != '\n')
			break;
	*block_end = next && next < end ? next : end;
	return at;
}

/* In one line, each run of blanks as one. */
static void copy_line(const char *from, const char *end, char out[TEXT_BYTES])
{
	size_t length = 0;

	for (const char *at = from; at < end && length < TEXT_BYTES - 1; at++) {
		bool is_blank = *at == ' ' || *at == '\n';

		if (!is_blank || (length && out[length - 1] != ' '))
			out[length++] = is_blank ? ' ' : *at;
	}
	out[length] = '\0';
}

/* What {…} holds, the braces too. */
static void copy_schema(const char *text, char *out, size_t room)
{
	const char *at = strstr(text, "schema: {");
	size_t length = 0;
	int depth = 0;

	if (at)
		for (at += strlen("schema: "); *at && length < room - 1; at++) {
			depth += (*at == '{') - (*at == '}');
			out[length++] = *at;
			if (!depth)
				break;
		}
	out[length] = '\0';
}

/* False: no parameter of the query string. */
static bool read_item(const char *from, const char *end, struct item *out)
{
	const char *all_end = embedded_openapi_yaml + strlen(embedded_openapi_yaml), *at;
	char text[TEXT_BYTES], key[60];

	copy_line(from, end, text);
	at = strstr(text, "#/components/parameters/");
	if (at && sscanf(at, "#/components/parameters/%59[a-z_]", key) == 1) {
		from = strstr(embedded_openapi_yaml, "\ncomponents:");
		from = block(from, all_end, 2, "parameters", &end);
		from = block(from, end, 4, key, &end);
		if (!CHECK(from))
			return false;
		copy_line(from, end, text);
	}
	*out = (struct item){.is_required = strstr(text, "required: true")};
	at = strstr(text, "name: ");
	if (!at || !strstr(text, "in: query"))
		return false;
	sscanf(at, "name: %39[a-z._]", out->name);
	copy_schema(text, out->schema, sizeof out->schema);
	at = strstr(text, "description: ");
	if (at) {
		at += strlen("description: ");
		at += strspn(at, ">|-\"' ");
		snprintf(out->description, sizeof out->description, "%s", at);
	}
	return true;
}

static unsigned read_contract(const char *path, const char *method, struct item *out)
{
	const char *end = strstr(embedded_openapi_yaml, "\ncomponents:"), *at, *next;
	unsigned count = 0;

	at = block(embedded_openapi_yaml, end, 2, path, &end);
	at = at ? block(at - 1, end, 4, method, &end) : NULL;
	at = at ? block(at - 1, end, 6, "parameters", &end) : NULL;
	at = at ? strstr(at, "\n        - ") : NULL;
	for (; at && at < end && count < ITEMS_MAX; at = next) {
		next = strstr(at + 1, "\n        - ");
		if (!next || next > end)
			next = end;
		count += read_item(at, next, &out[count]);
	}
	return count;
}

#define TYPE_NAME(name_, unit_, is_gauge_, sampling_) name_ ", "

static void put_enum(char *out, size_t room, const char *choices)
{
	size_t length = (size_t)snprintf(out, room, "type: string, enum: [");

	for (const char *at = choices; *at; at++)
		length += (size_t)snprintf(out + length, room - length, *at == '|' ? ", " : "%c",
					   *at);
	snprintf(out + length, room - length, "]");
}

/* As openapi.yaml writes what a row takes. */
static void put_schema(const struct parameter_row *row, char *out, size_t room)
{
	static const char types[] = PROFILE_TYPES(TYPE_NAME);
	const char *otherwise = row->otherwise;
	bool is_quoted = otherwise && (!*otherwise || strchr(otherwise, ','));
	char type[400] = "type: string", absent[80] = "";

	if (row->kind == PARAMETER_FLAG)
		snprintf(type, sizeof type, "type: boolean");
	else if (row->kind == PARAMETER_NUMBER)
		snprintf(type, sizeof type, "type: integer, minimum: %u, maximum: %u", row->minimum,
			 row->maximum);
	else if (row->kind == PARAMETER_SHARE)
		snprintf(type, sizeof type, "type: number, minimum: 0, maximum: 1");
	else if (row->kind == PARAMETER_CHOICE)
		put_enum(type, sizeof type, row->choices);
	else if (row->kind == PARAMETER_PATTERN)
		snprintf(type, sizeof type, "type: string, maxLength: %d", PATTERN_TEXT_MAX);
	else if (row->kind == PARAMETER_SELECTOR)
		snprintf(type, sizeof type, "type: string, maxLength: %d", SELECTOR_TEXT_MAX);
	else if (row->kind == PARAMETER_BUILD_ID)
		snprintf(type, sizeof type, "type: string, pattern: \"^([0-9a-fA-F]{2}){4,64}$\"");
	else if (row->kind == PARAMETER_TYPE)
		snprintf(type, sizeof type, "type: string, enum: [%.*s]", (int)sizeof types - 3,
			 types);
	if (otherwise)
		snprintf(absent, sizeof absent, ", default: %s%s%s", is_quoted ? "\"" : "",
			 otherwise, is_quoted ? "\"" : "");
	snprintf(out, room, "{ %s%s }", type, absent);
}

static bool is_item_of(const struct item *item, const struct parameter_row *row)
{
	char schema[600];

	put_schema(row, schema, sizeof schema);
	return !strcmp(item->name, row->name) && !strcmp(item->schema, schema) &&
	       item->is_required == row->is_required;
}

static void check_row(const struct parameter_row *row, unsigned endpoint, const struct item *items,
		      unsigned count)
{
	char schema[600];
	unsigned i = 0;

	while (i < count && strcmp(items[i].name, row->name))
		i++;
	put_schema(row, schema, sizeof schema);
	if (!CHECK(i < count && is_item_of(&items[i], row)))
		printf("# %s %s: the table has %s%s %s, openapi.yaml %s%s\n",
		       endpoints[endpoint].method, endpoints[endpoint].path,
		       row->is_required ? "required " : "", row->name, schema,
		       i < count && items[i].is_required ? "required " : "",
		       i < count ? items[i].schema : "no such parameter");
	if (i < count &&
	    !CHECK(!strncmp(items[i].description, row->sentence, strlen(row->sentence))))
		printf("# %s %s, %s: '%s' is described as '%.100s'\n", endpoints[endpoint].method,
		       endpoints[endpoint].path, row->name, row->sentence, items[i].description);
}

static bool has_row(const struct item *item, unsigned endpoint)
{
	for (const struct parameter_row *row = parameter_table; row->name; row++)
		for (unsigned e = 0; e < ENDPOINT_COUNT; e++)
			if (takes(row, e) && !strcmp(row->name, item->name) &&
			    !strcmp(endpoints[e].path, endpoints[endpoint].path) &&
			    !strcmp(endpoints[e].method, endpoints[endpoint].method))
				return true;
	return false;
}

static void test_contract(void)
{
	for (unsigned e = 0; e < ENDPOINT_COUNT; e++) {
		struct item items[ITEMS_MAX];
		unsigned count = read_contract(endpoints[e].path, endpoints[e].method, items);

		for (const struct parameter_row *row = parameter_table; row->name; row++)
			if (takes(row, e))
				check_row(row, e, items, count);
		for (unsigned i = 0; i < count; i++)
			if (!CHECK(has_row(&items[i], e)))
				printf("# %s %s takes no %s\n", endpoints[e].method,
				       endpoints[e].path, items[i].name);
	}
}

/* Endpoints outside of the table list nothing for the query string. */
static void test_none(void)
{
	for (const struct http_route *route = api_routes; route->path; route++) {
		struct item items[ITEMS_MAX];
		bool is_listed = false;

		for (unsigned e = 0; e < ENDPOINT_COUNT; e++)
			is_listed |= !strcmp(endpoints[e].path, route->path);
		if (!is_listed && !CHECK(!read_contract(route->path, "get", items)))
			printf("# %s has parameters that the table has not\n", route->path);
	}
}

/* ---- a server ---- */

/* The endpoint's path with what it needs, but for name; and name=value. */
static struct reply ask(unsigned endpoint, const char *name, const char *value)
{
	const char *path = endpoints[endpoint].path, *part = strchr(path, '{'), *rest;
	const char *method = !strcmp(endpoints[endpoint].method, "delete") ? "DELETE"
			     : !strcmp(endpoints[endpoint].method, "post") ? "POST"
									   : "GET";
	static const struct {
		unsigned endpoint;
		const char *name, *value;
	} needed[] = {{ENDPOINT_heatmap_functions, "by", "function"},
		      {ENDPOINT_sandwich, "function", "f"},
		      {ENDPOINT_module_symbols, "name", "f"},
		      {ENDPOINT_samples_delete, "from", "now-1m"},
		      {ENDPOINT_samples_delete, "until", "now"},
		      {ENDPOINT_samples_delete, "all", "true"}};
	char target[1000];
	int length;

	rest = part ? strchr(part, '}') + 1 : "";
	length = snprintf(target, sizeof target, "%.*s%s%s?", (int)strcspn(path, "{"), path,
			  !part                    ? ""
			  : strstr(part, "{name}") ? "host"
						   : "0123456789abcdef",
			  rest);
	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
		if (needed[i].endpoint == endpoint && strcmp(needed[i].name, name))
			length += snprintf(target + length, sizeof target - (size_t)length,
					   "%s=%s&", needed[i].name, needed[i].value);
	if (*name)
		snprintf(target + length, sizeof target - (size_t)length, "%s=%s", name, value);
	return client_ask(port, method, target,
			  "Content-Type: text/plain\r\n", "", 0);
}

static void check_taken(unsigned endpoint, const char *name, const char *value, bool is_taken)
{
	struct reply reply = ask(endpoint, name, value);
	bool is_refused = reply.status == 422;

	if (!CHECK(is_refused == !is_taken && reply.status && reply.status < 500 &&
		   (is_taken || strstr(reply.body, name))))
		printf("# %s %s=%s: %d %.200s\n", endpoints[endpoint].path, name, value,
		       reply.status, reply.body ? reply.body : "");
	reply_release(&reply);
}

static void check_choices(const struct parameter_row *row, unsigned endpoint)
{
	char choices[200], *rest = choices;

	snprintf(choices, sizeof choices, "%s", row->choices);
	for (char *choice = strsep(&rest, "|"); choice; choice = strsep(&rest, "|"))
		check_taken(endpoint, row->name, choice, true);
	check_taken(endpoint, row->name, "nothing_of_these", false);
	check_taken(endpoint, row->name, "", false);
}

static void check_range(const struct parameter_row *row, unsigned endpoint)
{
	char text[24];

	snprintf(text, sizeof text, "%u", row->minimum);
	check_taken(endpoint, row->name, text, true);
	snprintf(text, sizeof text, "%u", row->maximum);
	check_taken(endpoint, row->name, text, true);
	snprintf(text, sizeof text, "%lld", (long long)row->minimum - 1);
	check_taken(endpoint, row->name, text, false);
	snprintf(text, sizeof text, "%lld", (long long)row->maximum + 1);
	check_taken(endpoint, row->name, text, false);
}

static void check_kind(const struct parameter_row *row, unsigned endpoint)
{
	static const char *const wrong[] = {
		[PARAMETER_FLAG] = "perhaps",   [PARAMETER_SHARE] = "1.01",
		[PARAMETER_PATTERN] = "(",      [PARAMETER_SELECTOR] = "{",
		[PARAMETER_BUILD_ID] = "xyz",   [PARAMETER_TYPE] = "no-such",
		[PARAMETER_TIME] = "yesterday", [PARAMETER_DURATION] = "long",
		[PARAMETER_STEP] = "7s",        [PARAMETER_MINUTES] = "30s",
	};

	if (row->kind == PARAMETER_CHOICE)
		check_choices(row, endpoint);
	else if (row->kind == PARAMETER_NUMBER)
		check_range(row, endpoint);
	else if (row->kind < sizeof wrong / sizeof *wrong && wrong[row->kind])
		check_taken(endpoint, row->name, wrong[row->kind], false);
	if (row->is_required)
		check_taken(endpoint, row->name, "", false);
}

/* Of others the endpoint says that it does not know them, and which it does. */
static void check_unknown(unsigned endpoint)
{
	struct reply reply = ask(endpoint, "no_such", "1");

	CHECK_NUMBER(reply.status, 422);
	CHECK(strstr(reply.body, "no_such"));
	for (const struct parameter_row *row = parameter_table; row->name; row++)
		CHECK(!takes(row, endpoint) || strstr(reply.body, row->name));
	reply_release(&reply);
}

/* A path's endpoints share what tells them apart. */
static bool is_read(const struct parameter_row *row, unsigned endpoint)
{
	bool is_read = false;

	for (unsigned e = 0; e < ENDPOINT_COUNT; e++)
		is_read |= takes(row, e) && parameter_was_read(row, e) &&
			   !strcmp(endpoints[e].path, endpoints[endpoint].path);
	return is_read;
}

static void test_server(void)
{
	for (unsigned e = 0; e < ENDPOINT_COUNT; e++) {
		struct reply reply = ask(e, "", "");

		if (!CHECK(reply.status == 200 || reply.status == 404))
			printf("# %s: %d %s\n", endpoints[e].path, reply.status, reply.body);
		reply_release(&reply);
		for (const struct parameter_row *row = parameter_table; row->name; row++)
			if (takes(row, e) && !CHECK(is_read(row, e)))
				printf("# %s is listed and never read by %s\n", row->name,
				       endpoints[e].name);
		for (const struct parameter_row *row = parameter_table; row->name; row++)
			if (takes(row, e))
				check_kind(row, e);
		if (e != ENDPOINT_readyz)
			check_unknown(e);
	}
}

int main(int argc, char **argv)
{
	symbol_worker_main(argc, argv);
	log_set_level(LOG_ERROR);
	test_contract();
	test_none();
	if (CHECK(mkdtemp(directory)) && CHECK(start())) {
		test_server();
		stop();
	}
	remove_directory();
	return checks_done();
}

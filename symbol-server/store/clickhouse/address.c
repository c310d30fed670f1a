/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/clickhouse/address.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/hex.h"

/* Percent-decoded copy. False: it does not fit, or is no text. */
static bool decode(const char *from, size_t length, char *to, size_t room)
{
	size_t used = 0;

	for (size_t i = 0; i < length; i++) {
		int c = (unsigned char)from[i];

		if (c == '%') {
			if (i + 2 >= length || hex_digit(from[i + 1]) < 0 ||
			    hex_digit(from[i + 2]) < 0)
				return false;
			c = hex_digit(from[i + 1]) << 4 | hex_digit(from[i + 2]);
			i += 2;
		}
		if (used + 1 >= room || c < ' ' || c == 127)
			return false;
		to[used++] = (char)c;
	}
	to[used] = '\0';
	return true;
}

/* A name that needs no quotes in SQL. */
static bool copy_name(const char *from, size_t length, char to[CLICKHOUSE_NAME_MAX])
{
	if (!length || length >= CLICKHOUSE_NAME_MAX || isdigit((unsigned char)*from))
		return false;
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)from[i]) && from[i] != '_')
			return false;
	memcpy(to, from, length);
	to[length] = '\0';
	return true;
}

static bool parse_user(const char *at, const char *end, struct clickhouse_address *address)
{
	const char *colon = memchr(at, ':', (size_t)(end - at));

	if (colon && !decode(colon + 1, (size_t)(end - colon - 1), address->password,
			     sizeof address->password))
		return false;
	end = colon ? colon : end;
	return end > at && decode(at, (size_t)(end - at), address->user, sizeof address->user);
}

static bool parse_server(const char *scheme, const char *at, const char *end,
			 struct clickhouse_address *address)
{
	const char *colon = end, *port = strcmp(scheme, "https") != 0 ? "8123" : "8443";

	for (const char *c = at; c < end; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-._:[]", *c))
			return false;
	while (colon > at && colon[-1] != ':' && colon[-1] != ']')
		colon--;
	if (colon == end || colon == at || colon[-1] != ':')
		return end > at && end - at < 256 &&
		       snprintf(address->server, sizeof address->server, "%s://%.*s:%s", scheme,
				(int)(end - at), at, port) > 0;
	return colon - 1 > at && end - at < 256 &&
	       snprintf(address->server, sizeof address->server, "%s://%.*s", scheme,
			(int)(end - at), at) > 0;
}

static bool parse_parameter(const char *at, size_t length, struct clickhouse_address *address)
{
	static const char cluster[] = "cluster=", file[] = "password-file=";

	if (length > sizeof cluster - 1 && !strncmp(at, cluster, sizeof cluster - 1))
		return copy_name(at + sizeof cluster - 1, length - (sizeof cluster - 1),
				 address->cluster);
	return length > sizeof file - 1 && !strncmp(at, file, sizeof file - 1) &&
	       decode(at + sizeof file - 1, length - (sizeof file - 1), address->password_file,
		      sizeof address->password_file);
}

static bool parse_query(const char *at, struct clickhouse_address *address)
{
	while (*at) {
		size_t length = strcspn(at, "&");

		if (!parse_parameter(at, length, address))
			return false;
		at += length;
		at += *at == '&';
	}
	return true;
}

static bool read_password(struct clickhouse_address *address, struct error *err)
{
	FILE *file;
	bool ok;

	if (!*address->password_file)
		return true;
	file = fopen(address->password_file, "re");
	if (!file)
		return error_set(err, ERROR_OPTION, "cannot open the password's file '%s': %s",
				 address->password_file, strerror(errno));
	ok = fgets(address->password, sizeof address->password, file);
	address->password[strcspn(address->password, "\r\n")] = '\0';
	fclose(file);
	return ok || error_set(err, ERROR_OPTION, "the password's file '%s' is empty",
			       address->password_file);
}

bool clickhouse_address_parse(const char *url, struct clickhouse_address *address,
			      struct error *err)
{
	const char *scheme = !strncmp(url, "https://", 8) ? "https" : "http";
	const char *at = strstr(url, "://"), *path, *query, *user;

	*address = (struct clickhouse_address){.database = "farflame"};
	if (!at || strncmp(url, scheme, strlen(scheme)) != 0 || at != url + strlen(scheme))
		return error_set(err, ERROR_OPTION,
				 "the address of ClickHouse has to begin with http:// or https://");
	at += 3;
	query = strchr(at, '?');
	query = query ? query : at + strlen(at);
	path = memchr(at, '/', (size_t)(query - at));
	path = path ? path : query;
	user = memrchr(at, '@', (size_t)(path - at));
	if (user && !parse_user(at, user, address))
		return error_set(err, ERROR_OPTION,
				 "the user in the address of ClickHouse is not one");
	if (!parse_server(scheme, user ? user + 1 : at, path, address))
		return error_set(err, ERROR_OPTION, "the address of ClickHouse has no host");
	if (path + 1 < query && !copy_name(path + 1, (size_t)(query - path - 1), address->database))
		return error_set(err, ERROR_OPTION,
				 "the database in the address of ClickHouse may have letters, "
				 "digits and _ only");
	if (!parse_query(*query ? query + 1 : query, address))
		return error_set(
			err, ERROR_OPTION,
			"the address of ClickHouse takes ?cluster=NAME, password-file=PATH "
			"and nothing else");
	return read_password(address, err);
}

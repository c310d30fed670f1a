/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/network/url.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool refuse(struct error *err, const char *text, const char *why)
{
	return error_set(err, ERROR_OPTION,
			 "'%.200s' %s; a server's address looks like http://host:7878", text, why);
}

static bool host_is_good(const char *host, size_t length, bool is_bracketed)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)host[i];

		if (is_bracketed ? !isxdigit(c) && !strchr(":.", c)
				 : !isalnum(c) && !strchr("-._", c))
			return false;
	}
	return length > 0 && length < sizeof((struct url *)0)->host;
}

static bool take_port(const char *at, size_t length, struct url *url)
{
	char digits[6];
	long port;

	if (!length || length > 5 || strspn(at, "0123456789") < length)
		return false;
	memcpy(digits, at, length);
	digits[length] = '\0';
	port = strtol(digits, NULL, 10);
	if (port < 1 || port > 65535)
		return false;
	snprintf(url->port, sizeof url->port, "%ld", port);
	return true;
}

/* host, [host], each with or without :port. */
static bool take_authority(const char *at, size_t length, struct url *url)
{
	bool is_bracketed = length && at[0] == '[';
	const char *end = is_bracketed ? memchr(at, ']', length) : memchr(at, ':', length);
	const char *host = is_bracketed ? at + 1 : at, *rest;
	size_t host_length;

	if (is_bracketed && !end)
		return false;
	host_length = end ? (size_t)(end - host) : length;
	if (!host_is_good(host, host_length, is_bracketed))
		return false;
	memcpy(url->host, host, host_length);
	url->host[host_length] = '\0';
	strcpy(url->port, url->is_tls ? "443" : "80");
	rest = end ? end + is_bracketed : at + length;
	if (rest < at + length &&
	    (*rest != ':' || !take_port(rest + 1, (size_t)(at + length - rest - 1), url)))
		return false;
	snprintf(url->authority, sizeof url->authority, is_bracketed ? "[%s]:%s" : "%s:%s",
		 url->host, url->port);
	return true;
}

static bool take_prefix(const char *at, struct url *url)
{
	size_t length = strlen(at);

	while (length && at[length - 1] == '/')
		length--;
	for (size_t i = 0; i < length; i++)
		if (!isgraph((unsigned char)at[i]))
			return false;
	if (length >= sizeof url->prefix)
		return false;
	memcpy(url->prefix, at, length);
	url->prefix[length] = '\0';
	return true;
}

bool url_parse(const char *text, struct url *out, struct error *err)
{
	struct url url = {0};
	const char *at = text;
	size_t length;

	if (!strncasecmp(at, "http://", 7)) {
		at += 7;
	} else if (!strncasecmp(at, "https://", 8)) {
		at += 8;
		url.is_tls = true;
	} else {
		return refuse(err, text, "does not start with http:// or https://");
	}
	length = strcspn(at, "/?#");
	if (memchr(at, '@', length))
		return refuse(err, text, "holds a user name (--token-file carries what it would)");
	if (strpbrk(at, "?#"))
		return refuse(err, text, "holds a query or fragment");
	if (!take_authority(at, length, &url))
		return refuse(err, text, "has no host, or one or a port that cannot be");
	if (!take_prefix(at + length, &url))
		return refuse(err, text, "has a path that is too long or not printable");
	*out = url;
	return true;
}

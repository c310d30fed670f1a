/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/check.h"

#include "node-agent/network/url.h"

static const struct {
	const char *text, *host, *port, *authority, *prefix;
	bool is_tls;
} good[] = {
	{"http://host", "host", "80", "host:80", "", false},
	{"http://127.0.0.1:7878", "127.0.0.1", "7878", "127.0.0.1:7878", "", false},
	{"HTTPS://a.b-c.example:8443/", "a.b-c.example", "8443", "a.b-c.example:8443", "", true},
	{"https://h/some/where//", "h", "443", "h:443", "/some/where", true},
	{"http://[::1]:7878/x", "::1", "7878", "[::1]:7878", "/x", false},
	{"http://[2001:db8::1]", "2001:db8::1", "80", "[2001:db8::1]:80", "", false},
};

static const char *const bad[] = {
	"",
	"host:7878",
	"ftp://host",
	"http://",
	"http://:80",
	"http://host:0",
	"http://host:65536",
	"http://host:",
	"http://host:80x",
	"http://user@host",
	"http://host/?q=1",
	"http://host/#f",
	"http://ho st",
	"http://host/a b",
	"http://[::1",
	"http://[]:80",
	"http://[::1]80",
	"http://ho\r\nst",
	"http://host/\r\nX: y",
	"http:///path",
	"http://[fe80::1%25eth0]",
};

static void check_long(void)
{
	struct error err = {0};
	struct url url;
	char text[1024] = "http://";

	memset(text + 7, 'a', 300);
	CHECK(!url_parse(text, &url, &err));
	strcpy(text, "http://host/");
	memset(text + 12, 'a', 300);
	CHECK(!url_parse(text, &url, &err));
}

int main(void)
{
	struct error err = {0};
	struct url url;

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		CHECK(url_parse(good[i].text, &url, &err));
		CHECK_TEXT(url.host, good[i].host);
		CHECK_TEXT(url.port, good[i].port);
		CHECK_TEXT(url.authority, good[i].authority);
		CHECK_TEXT(url.prefix, good[i].prefix);
		CHECK_NUMBER(url.is_tls, good[i].is_tls);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (!CHECK(!url_parse(bad[i], &url, &err)))
			printf("# taken: '%s'\n", bad[i]);
		CHECK_NUMBER(err.kind, ERROR_OPTION);
	}
	check_long();
	return checks_done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* cmdline → what is shown of it. */
#include "tests/check.h"

#include <string.h>

#include "node-agent/processes/command_line.h"

#define BYTES(text_) text_, sizeof(text_)

static void test_lines(void)
{
	static const struct {
		const char *bytes;
		size_t length;
		const char *full, *name;
	} cases[] = {
		{BYTES("/bin/a\0--b\0c d"), "/bin/a --b c d", "/bin/a"},
		{"", 0, "", ""},
		{"\0\0", 2, "", ""},
		{BYTES("a\0\0b"), "a  b", "a"},
		{BYTES("nginx: worker process\0\0\0"), "nginx: worker process",
		 "nginx: worker process"},
		{BYTES("a\0x\ny\x7f"), "a x?y?", "a"},
		/* what is called like a secret */
		{BYTES("a\0--password=x\0--port=1"), "a --password=*** --port=1", "a"},
		{BYTES("a\0--Password\0x\0y"), "a --Password *** y", "a"},
		{BYTES("a\0--token-file\0--verbose\0y"), "a --token-file --verbose y", "a"},
		{BYTES("sh\0-c\0A=1 DB_PASSWORD=x;run y"), "sh -c A=1 DB_PASSWORD=***;run y", "sh"},
		{BYTES("a\0postgres://me:x@db/shop?api_key=y&z=1"),
		 "a postgres://me:***@db/shop?api_key=***&z=1", "a"},
		{BYTES("a\0http://host:80/x"), "a http://host:80/x", "a"},
		{BYTES("a\0password"), "a password", "a"},
	};
	char out[COMMAND_LINE_ROOM];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		command_line_write(cases[i].bytes, cases[i].length, COMMAND_LINES_FULL, out);
		CHECK_TEXT(out, cases[i].full);
		command_line_write(cases[i].bytes, cases[i].length, COMMAND_LINES_NAME, out);
		CHECK_TEXT(out, cases[i].name);
		command_line_write(cases[i].bytes, cases[i].length, COMMAND_LINES_OFF, out);
		CHECK_TEXT(out, "");
	}
}

/* At any length what is cut says so, and is still UTF-8. */
static void test_cut(void)
{
	char bytes[2000], out[COMMAND_LINE_ROOM];

	for (size_t length = 506; length < 520; length++) {
		size_t shown;

		for (size_t i = 0; i < length; i++)
			bytes[i] = i % 2 ? '\xa4' : '\xc3'; /* ä */
		command_line_write(bytes, length / 2 * 2, COMMAND_LINES_FULL, out);
		shown = strlen(out);
		CHECK(shown < COMMAND_LINE_ROOM);
		CHECK_NUMBER(!strcmp(out + shown - 3, "\xe2\x80\xa6"),
			     length / 2 * 2 >= COMMAND_LINE_ROOM);
		if (length / 2 * 2 >= COMMAND_LINE_ROOM)
			CHECK_NUMBER((shown - 3) % 2, 0);
	}
}

static void test_names(void)
{
	static const struct {
		const char *bytes;
		size_t length;
		const char *comm, *name; /* NULL: as comm says */
	} cases[] = {
		{BYTES("/usr/libexec/gnome-terminal-server\0-x"), "gnome-terminal-",
		 "gnome-terminal-server"},
		{BYTES("/usr/bin/python3\0/srv/nightly-report-maker.py"), "nightly-report-",
		 "nightly-report-maker.py"},
		{BYTES("a-name-of-many-letters /etc/x/y"), "a-name-of-many-",
		 "a-name-of-many-letters"},
		{BYTES("/usr/bin/cat"), "cat", NULL},
		{BYTES("fifteen-letters"), "fifteen-letters", NULL},
		{BYTES("/opt/other-program-name"), "gnome-terminal-", NULL},
		{BYTES("a\0b\0/c/gnome-terminal-server"), "gnome-terminal-", NULL},
		{"", 0, "kworker/u8:2-ev", NULL},
	};
	char name[COMMAND_NAME_ROOM];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		bool is_longer = command_line_name(cases[i].bytes, cases[i].length, cases[i].comm,
						   name);

		CHECK_NUMBER(is_longer, cases[i].name != NULL);
		if (is_longer)
			CHECK_TEXT(name, cases[i].name);
	}
}

static void test_environment(void)
{
	static const char bytes[] = "A=1\0OTEL_SERVICE_NAME=shop\nfront\0XA=2\0B=\0C\0A=3";
	char out[12];

	CHECK(environment_value(BYTES(bytes), "OTEL_SERVICE_NAME", out, sizeof out));
	CHECK_TEXT(out, "shop?front");
	CHECK(environment_value(BYTES(bytes), "OTEL_SERVICE_NAME", out, 4));
	CHECK_TEXT(out, "sho");
	CHECK(environment_value(BYTES(bytes), "A", out, sizeof out));
	CHECK_TEXT(out, "1");
	CHECK(!environment_value(BYTES(bytes), "B", out, sizeof out));
	CHECK(!environment_value(BYTES(bytes), "C", out, sizeof out));
	CHECK(!environment_value(BYTES(bytes), "OTEL", out, sizeof out));
	CHECK(!environment_value(bytes, 5, "OTEL_SERVICE_NAME", out, sizeof out));
	CHECK(!environment_value("", 0, "A", out, sizeof out));
}

int main(void)
{
	test_environment();
	test_lines();
	test_cut();
	test_names();
	return checks_done();
}

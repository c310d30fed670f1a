/* SPDX-License-Identifier: Apache-2.0 */
/* The line of every instruction of thousands of code objects, as the interpreters below
 * ~/.pyenv/versions and /usr/bin/python3 say themselves. */
#include "node-agent/runtimes/python_lines.h"

#include <stdbool.h>
#include <stdlib.h>

#include "tests/check.h"
#include "tests/unit/runtimes/interpreters.h"

struct tally {
	uint64_t objects, instructions, wrong;
};

static uint8_t digit(char c)
{
	return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static size_t from_hex(const char *text, uint8_t **bytes)
{
	const size_t length = strlen(text) / 2;

	*bytes = realloc(*bytes, length + 1);
	for (size_t i = 0; i < length; i++)
		(*bytes)[i] = (uint8_t)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
	return length;
}

static void compare(FILE *truth, enum python_line_format format, struct tally *tally)
{
	char *line = NULL;
	int at;
	uint8_t *table = malloc(1);
	size_t room = 0, length = 0;
	unsigned first = 0, from, until, want;

	while (getline(&line, &room, truth) > 0) {
		if (line[0] == 'C') {
			sscanf(line, "C %u %n", &first, &at);
			length = from_hex(line + at, &table);
			tally->objects++;
		}
		if (sscanf(line, "%u %u %u", &from, &until, &want) != 3)
			continue;
		for (; from < until; from += 2, tally->instructions++) {
			const uint32_t got = python_line_find(format, table, length, first, from);
			if (got != want && tally->wrong++ < 5)
				printf("# at %u: line %u, not %u\n", from, got, want);
		}
	}
	free(line);
	free(table);
}

static void test_interpreter(const char *path)
{
	char command[400], what[500];
	struct tally tally = {0};
	struct python_layout layout;
	unsigned minor = 0;

	snprintf(command, sizeof command, "%s -c 'import sys; print(sys.version_info[1])'", path);
	FILE *version = popen(command, "r");
	if (!version || fscanf(version, "%u", &minor) != 1)
		minor = 0;
	if (version)
		pclose(version);
	const enum python_line_format format = python_layout_find(0x03000000 | minor << 16, &layout)
						       ? layout.lines
						       : PYTHON_LINES_LOCATIONS;
	snprintf(command, sizeof command, "%s -W ignore tests/programs/python_lines.py", path);
	FILE *truth = popen(command, "r");
	if (truth) {
		compare(truth, format, &tally);
		pclose(truth);
	}
	snprintf(what, sizeof what, "%s: %" PRIu64 " instructions of %" PRIu64 " code objects",
		 path, tally.instructions, tally.objects);
	check_report(tally.objects > 5000 && tally.instructions > 50000 && tally.wrong == 0, what,
		     __FILE__, __LINE__);
}

static void test_edges(void)
{
	static const uint8_t endless[] = {0x80 | 13 << 3, 0x7f, 0x7f, 0x7f, 0x7f,
					  0x7f,           0x7f, 0x7f, 0x01};
	static const uint8_t cut[] = {0x80 | 13 << 3, 0x7f};
	static const uint8_t back[] = {0x80 | 13 << 3, 0x13}; /* -9 */
	static const uint8_t pairs[] = {2, 1, 4};

	for (enum python_line_format format = 0; format <= PYTHON_LINES_LOCATIONS; format++)
		CHECK_NUMBER(python_line_find(format, NULL, 0, 7, PYTHON_POSITION_NONE), 7);
	CHECK_NUMBER(python_line_find(PYTHON_LINES_LOCATIONS, endless, sizeof endless, 7, 0), 0);
	CHECK_NUMBER(python_line_find(PYTHON_LINES_LOCATIONS, cut, sizeof cut, 7, 0), 0);
	CHECK_NUMBER(python_line_find(PYTHON_LINES_LOCATIONS, back, sizeof back, 7, 0), 0);
	CHECK_NUMBER(python_line_find(PYTHON_LINES_LOCATIONS, back, sizeof back, 10, 0), 1);
	CHECK_NUMBER(python_line_find(PYTHON_LINES_LOCATIONS, back, sizeof back, 10, 2), 0);
	CHECK_NUMBER(python_line_find(PYTHON_LINES_LNOTAB, pairs, sizeof pairs, 7, 1000), 8);
	CHECK_NUMBER(python_line_find(PYTHON_LINES_RANGES, pairs, sizeof pairs, 7, 2), 0);
	CHECK_NUMBER(python_line_find(PYTHON_LINES_LOCATIONS, NULL, 0, 7, 0), 0);
}

int main(void)
{
	test_interpreters(test_interpreter);
	test_edges();
	return checks_done();
}

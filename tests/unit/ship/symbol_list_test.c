/* SPDX-License-Identifier: Apache-2.0 */
/* What the server says of functions: as it says it (tests/system/module_symbols_test.py has the
 * same from a real one), and everything else. */
#include "node-agent/ship/symbol_list.h"

#include <stdlib.h>

#include "tests/check.h"

static const char *const names[] = {"malloc", "calloc", "mi_malloc"};
static struct symbol_list list;
static struct error err;

/* Exactly as long as the text, so that ASan sees every step outside. */
static bool parse(const char *text, size_t length)
{
	uint8_t *bytes = malloc(length ? length : 1);
	bool ok;

	memcpy(bytes, text, length);
	err = (struct error){0};
	ok = symbol_list_parse((struct bytes){bytes, length}, names, 3, &list, &err);
	free(bytes);
	return ok;
}

static void check_good(void)
{
	static const char text[] = "malloc 0x4106a0 1234\nmi_malloc 0xffffffffffffffff 0\n"
				   "malloc 0x0 18446744073709551615\n";

	CHECK(parse(text, sizeof text - 1));
	CHECK_NUMBER(list.count, 3);
	CHECK_NUMBER(list.items[0].name, 0);
	CHECK_NUMBER(list.items[0].address, 0x4106a0);
	CHECK_NUMBER(list.items[0].bytes, 1234);
	CHECK_NUMBER(list.items[1].name, 2);
	CHECK(list.items[1].address == UINT64_MAX);
	CHECK_NUMBER(list.items[2].name, 0);
	CHECK(list.items[2].bytes == UINT64_MAX);
	CHECK(parse("", 0));
	CHECK_NUMBER(list.count, 0);
}

static void check_wrong(void)
{
	static const char *const texts[] = {
		"\n",
		"malloc 0x1 2", /* no end */
		"malloc 0x1 2\r\n",
		"malloc 0x1  2\n",
		"malloc  0x1 2\n",
		" malloc 0x1 2\n",
		"malloc 0x1 2 \n",
		"malloc 1 2\n",
		"malloc 0x 2\n",
		"malloc 0x1 \n",
		"malloc 0x1\n",
		"malloc\n",
		"malloc 0xA 2\n",
		"malloc 0x1 a\n",
		"malloc 0x1 -2\n",
		"malloc 0x10000000000000000 2\n",
		"malloc 0x1 18446744073709551616\n",
		"free 0x1 2\n", /* was not asked for */
		"mallo 0x1 2\n",
		"mallocs 0x1 2\n",
		"malloc 0x1 2\ncalloc 0x1 2\nx",
		"<html>\n",
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		CHECK(!parse(texts[i], strlen(texts[i])));
		CHECK_NUMBER(err.kind, ERROR_FORMAT);
	}
	CHECK(!parse("malloc 0x1\0 2\n", 14));
	CHECK(!parse("malloc\0 0x1 2\n", 14));
}

static void check_many(void)
{
	static const char line[] = "calloc 0x1 2\n";
	static char text[(SYMBOL_LIST_MAX + 1) * (sizeof line - 1)];

	for (size_t i = 0; i <= SYMBOL_LIST_MAX; i++)
		memcpy(text + i * (sizeof line - 1), line, sizeof line - 1);
	CHECK(parse(text, sizeof text - (sizeof line - 1)));
	CHECK_NUMBER(list.count, SYMBOL_LIST_MAX);
	CHECK(!parse(text, sizeof text));
	CHECK_NUMBER(err.kind, ERROR_LIMIT);
}

int main(void)
{
	check_good();
	check_wrong();
	check_many();
	return checks_done();
}

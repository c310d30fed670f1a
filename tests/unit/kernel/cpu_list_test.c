/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/kernel/cpu_list.h"

#include <stdio.h>

#include "tests/check.h"

static void test_lists(void)
{
	static const struct {
		const char *text;
		unsigned limit;     /* highest + 1; 0: refused */
		const char *listed; /* of the first ten */
	} rows[] = {
		{"0-1\n", 2, "11........"},
		{"0\n", 1, "1........."},
		{"0-2,5,7-8", 9, "111..1.11."},
		{"3", 4, "...1......"},
		{"0,8-4095\n", 4096, "1.......11"},
		{"", 0, NULL},
		{"\n", 0, NULL},
		{"a", 0, NULL},
		{"1-", 0, NULL},
		{"3-1", 0, NULL},
		{"0,", 0, NULL},
		{"0-1 2", 0, NULL},
		{"8192", 0, NULL},
		{"99999999999999999999", 0, NULL},
		{"-1", 0, NULL},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		bool is_listed[10];
		char listed[11] = "";
		unsigned limit = cpu_list_parse(rows[i].text, is_listed, 10);

		printf("# row %zu\n", i);
		CHECK_NUMBER(limit, rows[i].limit);
		for (int cpu = 0; cpu < 10; cpu++)
			listed[cpu] = is_listed[cpu] ? '1' : '.';
		if (rows[i].listed)
			CHECK_TEXT(listed, rows[i].listed);
	}
}

static void test_count(void)
{
	bool is_listed[10];

	cpu_list_parse("0-2,5", is_listed, 10);
	CHECK_NUMBER(cpu_list_count(is_listed, 10), 4);
	CHECK_NUMBER(cpu_list_count(is_listed, 2), 2);
}

static void test_file(void)
{
	bool is_listed[CPU_LIMIT];
	struct error err = {0};

	CHECK(cpu_list_read("/sys/devices/system/cpu/possible", is_listed, CPU_LIMIT, &err) > 0);
	CHECK_NUMBER(cpu_list_read("/nonexistent", is_listed, CPU_LIMIT, &err), 0);
	CHECK_NUMBER(err.kind, ERROR_SYSTEM);
	err = (struct error){0};
	CHECK_NUMBER(cpu_list_read("/proc/version", is_listed, CPU_LIMIT, &err), 0);
	CHECK_NUMBER(err.kind, ERROR_FORMAT);
}

int main(void)
{
	test_lists();
	test_count();
	test_file();
	return checks_done();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/cpu_ticks.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/check.h"

#define PERIOD UINT64_C(10000000) /* 10 ms */

static void test_settle(void)
{
	static const struct {
		const char *what;
		struct cpu_ticks cpu; /* in periods here */
		uint64_t idle, missed;
	} rows[] = {
		{"busy, every tick came", {.counted_ns = 100, .ticks = 100}, 0, 0},
		{"idle, every tick came", {100, 100, 100, 100}, 100, 0},
		{"idle, no tick came", {100, 0, 0, 100}, 100, 0},
		{"idle for 90, 10 taken", {100, 10, 0, 90}, 90, 0},
		{"the hypervisor took 30", {100, 70, 0, 0}, 0, 30},
		{"half idle without ticks, 10 stolen", {100, 40, 0, 50}, 50, 10},
		{"idle time is never more than what did not come", {100, 80, 10, 60}, 30, 0},
		{"idle ticks stay idle ticks", {100, 100, 20, 0}, 20, 0},
		{"more ticks than counted", {100, 102, 50, 60}, 50, 0},
		{"nothing", {0, 0, 0, 0}, 0, 0},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct cpu_ticks cpu = rows[i].cpu;
		uint64_t idle, missed;

		printf("# %s\n", rows[i].what);
		cpu.counted_ns *= PERIOD;
		cpu.idle_ns *= PERIOD;
		cpu_ticks_settle(&cpu, PERIOD, &idle, &missed);
		CHECK_NUMBER(idle, rows[i].idle);
		CHECK_NUMBER(missed, rows[i].missed);
	}
}

static void test_lines(void)
{
	static const struct {
		const char *line;
		bool is_cpu;
		unsigned cpu;
		uint64_t idle_ns;
	} rows[] = {
		{"cpu1 168757 3561 43953 400122 2175 0 788 383 0 0\n", true, 1, 4022970000000},
		{"cpu0 1 2 3 4 5\n", true, 0, 90000000}, /* as Linux 2.6 had it */
		{"cpu255 0 0 0 900000000000 0 0\n", true, 255, 9000000000000000000},
		{"cpu  322455 8291 83364 820429 2736 0 1099 777 0 0\n", false, 0, 0},
		{"cpu1 168757 3561\n", false, 0, 0},
		{"intr 1 2 3 4 5 6 7\n", false, 0, 0},
		{"", false, 0, 0},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		unsigned cpu = 0;
		uint64_t idle_ns = 0;

		printf("# row %zu\n", i);
		CHECK(cpu_idle_parse(rows[i].line, 100, &cpu, &idle_ns) == rows[i].is_cpu);
		if (rows[i].is_cpu) {
			CHECK_NUMBER(cpu, rows[i].cpu);
			CHECK_NUMBER(idle_ns, rows[i].idle_ns);
		}
	}
}

static void test_file(void)
{
	uint64_t idle_ns[3] = {7, 7, 7};
	char path[] = "/tmp/cpu_ticks_test.XXXXXX";
	int fd = mkstemp(path);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	struct error err = {0};

	CHECK(file);
	if (!file)
		return;
	/* CPU 1 is offline, CPU 9 beyond what was possible at the start */
	fputs("cpu  0 0 0 999 0\ncpu0 0 0 0 10 1\ncpu2 0 0 0 20 2\ncpu9 0 0 0 9 9\nintr 5\n"
	      "cpu1 0 0 0 5 5\n",
	      file);
	fclose(file);
	CHECK(cpu_idle_read(path, idle_ns, 3, &err));
	CHECK_NUMBER(idle_ns[0] * (uint64_t)sysconf(_SC_CLK_TCK), 11000000000);
	CHECK_NUMBER(idle_ns[1], 7);
	CHECK_NUMBER(idle_ns[2] * (uint64_t)sysconf(_SC_CLK_TCK), 22000000000);
	unlink(path);
	CHECK(!cpu_idle_read(path, idle_ns, 3, &err) && err.kind == ERROR_SYSTEM);
}

int main(void)
{
	test_settle();
	test_lines();
	test_file();
	return checks_done();
}

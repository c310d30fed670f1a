/* SPDX-License-Identifier: Apache-2.0 */
/* The table of figures: each metric has one name and a place in schema/README.md, all fit into a
 * report, and lines and metrics say the same of the same counts. */
#include "tests/check.h"

#include <string.h>

#include "node-agent/report/counters.h"

enum { ROOM = 200, NAME_MAX_BYTES = 32 };

static struct counted now;
static struct profile_counter listed[ROOM];

/* Everything is there, and every source is value. */
static void fill(uint64_t value)
{
	uint64_t *words = (uint64_t *)&now;

	memset(&now, 0, sizeof now);
	for (size_t i = 0; i < offsetof(struct counted, is_there) / sizeof *words; i++)
		words[i] = value;
	memset(now.is_there, 1, sizeof now.is_there);
}

static const struct profile_counter *find(enum counters_reader reader, const char *name)
{
	size_t count = counters_list(&now, reader, listed, ROOM);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(listed[i].name, name))
			return &listed[i];
	return NULL;
}

static void test_room(void)
{
	fill(1);
	CHECK(counters_list(&now, COUNTERS_REPORT, listed, ROOM) <= SHIP_COUNTERS_MAX);
	CHECK(counters_list(&now, COUNTERS_FILE, listed, ROOM) <= SHIP_COUNTERS_MAX + 16);
	CHECK(counters_list(&now, COUNTERS_HOST, listed, ROOM) <= SHIP_COUNTERS_MAX + 16);
	CHECK_NUMBER(counters_list(&now, COUNTERS_HOST, listed, 3), 3);
}

static void test_names(void)
{
	size_t count, twice = 0;

	fill(1);
	count = counters_list(&now, COUNTERS_HOST, listed, ROOM);
	for (size_t i = 0; i < count; i++) {
		const char *name = listed[i].name;

		CHECK(strlen(name) <= NAME_MAX_BYTES);
		CHECK_NUMBER(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.-"), strlen(name));
		for (size_t other = 0; other < i; other++)
			twice += !strcmp(listed[other].name, name);
	}
	CHECK_NUMBER(twice, 0);
}

/* As `farflame.group.name`, or `.name` in the row of its group; whole families by their prefix. */
static void test_schema(void)
{
	static char text[64 << 10];
	FILE *schema = fopen("schema/README.md", "r");
	char quoted[64];
	size_t count, length;

	if (!schema)
		return; /* run from elsewhere */
	length = fread(text, 1, sizeof text - 1, schema);
	fclose(schema);
	CHECK(length > 0 && length < sizeof text - 1);
	fill(1);
	count = counters_list(&now, COUNTERS_FILE, listed, ROOM);
	for (size_t i = 0; i < count; i++) {
		const char *name = listed[i].name, *dot = strchr(name, '.');
		bool is_known;

		snprintf(quoted, sizeof quoted, "`farflame.%s`", name);
		is_known = strstr(text, quoted) || !strncmp(name, "lost.", 5) ||
			   !strncmp(name, "stacks.", 7) || !strncmp(name, "lacks.", 6);
		snprintf(quoted, sizeof quoted, "`%s`", dot ? dot : name);
		if (!is_known && !strstr(text, quoted))
			printf("# not in schema/README.md: %s\n", name);
		CHECK(is_known || strstr(text, quoted));
	}
}

static void test_waits(void)
{
	char text[1024];

	fill(0);
	now.capture.kernel[COUNT_waits] = 7;
	now.capture.kernel[COUNT_waited_ns] = 2500000000;
	now.capture.kernel[COUNT_waited_disk_ns] = 1500000000;
	now.capture.kernel[COUNT_switch_ring_full] = 10;
	now.capture.kernel[COUNT_wakes_ring_full] = 20;
	now.waits.refused = 30;
	now.waits.kept = 5;
	now.capture.sweeps.cpu_ns = 3999999;
	CHECK_NUMBER(find(COUNTERS_REPORT, "off-cpu.exact_ns")->value, 4000000000);
	CHECK_NUMBER(find(COUNTERS_REPORT, "off-cpu.exact_disk_ns")->value, 1500000000);
	CHECK_NUMBER(find(COUNTERS_REPORT, "off-cpu.stacks_lost")->value, 60);
	counters_text(&now, LINE_waits, text, sizeof text);
	CHECK_TEXT(text, " waits=7 exact_s=4 covered_s=0 stacks=0 stacks_lost=10 refused=30"
			 " ends_lost=20 ends_unknown=0 ends_unseen=0 too_long=0 escaped=0"
			 " threads_full=0 kept=5 kept_bytes=0 sweeps=0 sweep_stacks=0"
			 " sweep_cpu_ms=3");
	now.is_there[LINE_waits] = false;
	CHECK(!find(COUNTERS_REPORT, "off-cpu.waits"));
	counters_text(&now, LINE_waits, text, sizeof text);
	CHECK_TEXT(text, "");
}

/* What is left out while it is 0, in one place or in both. */
static void test_if_any(void)
{
	char text[1024];

	fill(0);
	CHECK(!find(COUNTERS_REPORT, "lost.malformed"));
	CHECK(!find(COUNTERS_REPORT, "stacks.complete"));
	CHECK(find(COUNTERS_REPORT, "stacks.guessed"));
	CHECK(!find(COUNTERS_REPORT, "lacks.bpf"));
	counters_text(&now, LINE_samples, text, sizeof text);
	CHECK(strstr(text, " lost_malformed=0 "));
	now.samples.malformed = 2;
	now.capture.malformed = 3;
	CHECK_NUMBER(find(COUNTERS_REPORT, "lost.malformed")->value, 5);
	counters_text(&now, LINE_results, text, sizeof text);
	CHECK_TEXT(text, "");
	now.samples.by_result[WALK_complete] = 8;
	now.samples.by_result[WALK_compat_32bit] = 9;
	counters_text(&now, LINE_results, text, sizeof text);
	CHECK_TEXT(text, " complete=8 compat_32bit=9");
	now.capture.faults.minor = 1;
	now.is_silent[LINE_faults] = true;
	counters_text(&now, LINE_faults, text, sizeof text);
	CHECK_TEXT(text, "");
	CHECK_NUMBER(find(COUNTERS_REPORT, "page-fault.minor")->value, 1);
}

/* Ship names what it knows better than the report; monitoring reads both. */
static void test_readers(void)
{
	fill(0);
	now.taken_whole = 4;
	now.capture.taken = 6;
	now.cpus = 2;
	now.shipped.samples_lost_queue = 3;
	now.windows_percent = 0.5;
	CHECK(!find(COUNTERS_REPORT, "taken"));
	CHECK_NUMBER(find(COUNTERS_FILE, "taken")->value, 4);
	CHECK_NUMBER(find(COUNTERS_HOST, "taken")->value, 4);
	CHECK_NUMBER(find(COUNTERS_FILE, "cpus")->value, 2);
	CHECK(!find(COUNTERS_HOST, "cpus"));
	CHECK(!find(COUNTERS_REPORT, "lost.queue"));
	CHECK(!find(COUNTERS_FILE, "lost.queue"));
	CHECK_NUMBER(find(COUNTERS_HOST, "lost.queue")->value, 3);
}

static void test_percent(void)
{
	char text[1024];

	fill(0);
	now.windows_percent = 0.12345;
	now.windows_budget = 1;
	counters_text(&now, LINE_windows, text, sizeof text);
	CHECK(strstr(text, " cost_percent=0.123 budget=1.000 refused=0 "));
}

int main(void)
{
	test_room();
	test_names();
	test_schema();
	test_waits();
	test_if_any();
	test_readers();
	test_percent();
	return checks_done();
}

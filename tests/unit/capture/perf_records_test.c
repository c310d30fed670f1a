/* SPDX-License-Identifier: Apache-2.0 */
/* Records that a 6.18 kernel wrote for one run of /bin/true; what they mean was read from file(1),
 * stat(1) and readelf(1) on the same files. */
#include "node-agent/capture/perf_records.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

#define COMM_EXEC "0300000000202800446d0000446d00007472756500000000446d0000446d0000ce045d1ba7020000"
#define MMAP_TRUE                                                                                  \
	"0a00000002406800446d0000446d000000308553855500000040000000000000002000000000000014000000" \
	"c89156ebdabf859f4ee70cb0c303004dccf1ae5105000000020000002f7573722f62696e2f74727565000000" \
	"446d0000446d0000a4785d1ba7020000"
#define MMAP_TRUE_INODE                                                                            \
	"0a00000002006800476d0000476d000000c0f59f6c55000000400000000000000020000000000000fe000000" \
	"0000000029c8030000000000000000000000000005000000020000002f7573722f62696e2f74727565000000" \
	"476d0000476d00004abf791ba7020000"
#define MMAP_VDSO                                                                                  \
	"0a00000002006000446d0000446d0000005067e22e7f00000020000000000000000000000000000000000000" \
	"000000000000000000000000000000000000000005000000020000005b7664736f5d0000446d0000446d0000" \
	"b3225e1ba7020000"
#define FORK                                                                                       \
	"0700000000003000446d0000436d0000446d0000436d00008b435a1ba7020000436d0000436d00000e425a1b" \
	"a7020000"
#define EXIT                                                                                       \
	"0400000000003000446d0000436d0000446d0000436d000023d9631ba7020000446d0000446d0000e3d7631b" \
	"a7020000"

static uint8_t record[256];

static size_t record_from(const char *hex)
{
	size_t length = strlen(hex) / 2;

	for (size_t i = 0; i < length; i++) {
		char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};

		record[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return length;
}

static struct process_event parse(const char *hex)
{
	struct process_event event;
	size_t length = record_from(hex);

	CHECK(perf_record_parse(record, length, &event));
	CHECK_NUMBER(perf_record_time(record, length), event.time_ns);
	return event;
}

static void test_mapping_with_build_id(void)
{
	struct process_event event = parse(MMAP_TRUE);
	char hex[BUILD_ID_HEX];

	CHECK_NUMBER(event.type, PROCESS_EVENT_MAPPING);
	CHECK_NUMBER(event.tgid, 27972);
	CHECK_NUMBER(event.time_ns, 0x02a71b5d78a4);
	CHECK_NUMBER(event.mapping.tgid, 27972);
	CHECK_NUMBER(event.mapping.time_ns, event.time_ns);
	CHECK_NUMBER(event.mapping.start, 0x558553853000);
	CHECK_NUMBER(event.mapping.length, 0x4000);
	CHECK_NUMBER(event.mapping.file_offset, 0x2000);
	CHECK_TEXT(build_id_format(&event.mapping.build_id, hex),
		   "c89156ebdabf859f4ee70cb0c303004dccf1ae51");
	CHECK_NUMBER(event.mapping.inode, 0);
	CHECK_TEXT(event.mapping.path, "/usr/bin/true");
	CHECK(!event.mapping.is_anonymous);
}

static void test_mapping_with_inode(void)
{
	struct process_event event = parse(MMAP_TRUE_INODE);

	CHECK_NUMBER(event.type, PROCESS_EVENT_MAPPING);
	CHECK_NUMBER(event.mapping.build_id.length, 0);
	CHECK_NUMBER(event.mapping.device_major, 254);
	CHECK_NUMBER(event.mapping.device_minor, 0);
	CHECK_NUMBER(event.mapping.inode, 247849);
}

static void test_special_mappings(void)
{
	static const struct {
		const char *path;
		bool is_anonymous;
	} rows[] = {
		{"[vdso]", false}, {"//anon", true},        {"[heap]", true},
		{"", true},        {"/dev/zero (d)", true}, {"/memfd:jit", false},
	};

	CHECK(!parse(MMAP_VDSO).mapping.is_anonymous);
	CHECK_TEXT(parse(MMAP_VDSO).mapping.path, "[vdso]");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct process_event event;
		size_t length = record_from(MMAP_TRUE);

		memset(record + 72, 0, 16);
		memcpy(record + 72, rows[i].path, strlen(rows[i].path));
		printf("# '%s'\n", rows[i].path);
		CHECK(perf_record_parse(record, length, &event));
		CHECK_NUMBER(event.mapping.is_anonymous, rows[i].is_anonymous);
	}
}

static void test_tasks(void)
{
	struct process_event event = parse(COMM_EXEC);
	size_t length;

	CHECK_NUMBER(event.type, PROCESS_EVENT_EXEC);
	CHECK_NUMBER(event.tgid, 27972);

	event = parse(FORK);
	CHECK_NUMBER(event.type, PROCESS_EVENT_FORK);
	CHECK_NUMBER(event.tgid, 27972);
	CHECK_NUMBER(event.parent_tgid, 27971);

	event = parse(EXIT);
	CHECK_NUMBER(event.type, PROCESS_EVENT_THREAD_EXIT);
	CHECK_NUMBER(event.tgid, 27972);
	CHECK_NUMBER(event.tid, 27972);

	length = record_from(FORK);
	memcpy(record + 12, record + 8, 4); /* ppid = pid: a thread */
	CHECK(perf_record_parse(record, length, &event));
	CHECK_NUMBER(event.type, PROCESS_EVENT_THREAD);
	CHECK_NUMBER(event.tid, 27972);
	CHECK_NUMBER(event.parent_tid, 27971);

	length = record_from(COMM_EXEC);
	record[5] = 0; /* a thread gave itself a name */
	CHECK(perf_record_parse(record, length, &event));
	CHECK_NUMBER(event.type, PROCESS_EVENT_NAME);
	CHECK_TEXT(event.name, "true");
}

static void test_not_executable(void)
{
	struct process_event event;
	size_t length = record_from(MMAP_TRUE);

	record[64] = 1; /* PROT_READ */
	CHECK(perf_record_parse(record, length, &event));
	CHECK_NUMBER(event.type, PROCESS_EVENT_OTHER);
	length = record_from(MMAP_TRUE);
	memset(record + 24, 0xff, 8); /* ends beyond the address space */
	CHECK(perf_record_parse(record, length, &event));
	CHECK_NUMBER(event.type, PROCESS_EVENT_OTHER);
	length = record_from(MMAP_TRUE);
	record[40] = 255; /* a build-id longer than its room */
	CHECK(perf_record_parse(record, length, &event));
	CHECK_NUMBER(event.mapping.build_id.length, 0);
}

static void test_lost(void)
{
	struct {
		struct perf_event_header header;
		uint64_t id, lost;
		uint32_t pid, tid;
		uint64_t time_ns;
	} lost = {{PERF_RECORD_LOST, 0, sizeof lost}, 3, 77, 1, 2, 1234};
	struct process_event event;

	CHECK(perf_record_parse(&lost, sizeof lost, &event));
	CHECK_NUMBER(event.type, PROCESS_EVENT_LOST);
	CHECK_NUMBER(event.lost, 77);
	CHECK_NUMBER(event.time_ns, 1234);
}

/* Every cut, in an allocation of just that size, so that ASan sees a step outside. */
static void test_cut_short(void)
{
	static const char *const whole[] = {COMM_EXEC, MMAP_TRUE, MMAP_TRUE_INODE, FORK, EXIT};
	unsigned accepted = 0;

	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
		size_t length = record_from(whole[i]);

		for (size_t cut = 0; cut < length; cut++) {
			uint8_t *copy = malloc(cut ? cut : 1);
			struct process_event event;
			uint16_t size = (uint16_t)cut;

			memcpy(copy, record, cut);
			accepted += perf_record_parse(copy, cut,
						      &event); /* header.size disagrees */
			if (cut >= 8)
				memcpy(copy + 6, &size, 2);
			perf_record_parse(copy, cut, &event);
			perf_record_time(copy, cut);
			free(copy);
		}
	}
	CHECK_NUMBER(accepted, 0);
}

static void test_path_without_end(void)
{
	struct process_event event;
	size_t length = record_from(MMAP_TRUE);

	memset(record + 72, 'x', 16);
	CHECK(!perf_record_parse(record, length, &event));
}

int main(void)
{
	test_mapping_with_build_id();
	test_mapping_with_inode();
	test_special_mappings();
	test_tasks();
	test_not_executable();
	test_lost();
	test_cut_short();
	test_path_without_end();
	return checks_done();
}

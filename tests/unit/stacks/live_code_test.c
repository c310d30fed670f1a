/* SPDX-License-Identifier: Apache-2.0 */
/* Code in this process' own memory, which changes. */
#include "node-agent/stacks/live_code.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "node-agent/kernel/stranger_reader.h"
#include "tests/check.h"

enum { PAGE = 4096 };

#define SECOND UINT64_C(1000000000)

static bool is_read(struct live_code *code, uint64_t now_ns, const uint8_t *from, uint8_t value)
{
	uint8_t bytes[8];

	return live_code_read(code, (uint32_t)getpid(), 0, now_ns, 0, (uintptr_t)from, bytes,
			      sizeof bytes) &&
	       bytes[0] == value && !memcmp(bytes, bytes + 1, sizeof bytes - 1);
}

static void check_reads(struct live_code *code, uint8_t *memory)
{
	uint64_t other = 0;

	memset(memory, 7, 2 * PAGE);
	CHECK(is_read(code, SECOND, memory, 7));
	CHECK(is_read(code, SECOND, memory + PAGE - 3, 7)); /* in two pages */
	memset(memory, 9, 2 * PAGE);
	CHECK(is_read(code, SECOND + 1, memory, 7)); /* what was there a moment ago */
	CHECK(live_code_read(code, (uint32_t)getpid(), 0, SECOND + 2, SECOND + 1, (uintptr_t)memory,
			     &other, sizeof other));
	CHECK_NUMBER(other, UINT64_C(0x0909090909090909)); /* what is there since */
	CHECK(is_read(code, 2 * SECOND, memory, 9));
	CHECK(!is_read(code, 3 * SECOND, memory + 2 * PAGE, 9));
	CHECK(!is_read(code, 3 * SECOND, memory + 2 * PAGE - 4, 9));
	CHECK(!live_code_read(code, (uint32_t)getpid(), 12345, 4 * SECOND, 0, (uintptr_t)memory,
			      &other, sizeof other)); /* another process of that number */
}

/* So many pages a second, no more. */
static void check_bound(struct live_code *code, const uint8_t *memory)
{
	unsigned read = 0;

	for (unsigned i = 0; i < 200; i++)
		read += is_read(code, 10 * SECOND, memory + i * PAGE, 0);
	CHECK_NUMBER(read, 100);
	CHECK(is_read(code, 11 * SECOND, memory + 199 * PAGE, 0));
}

int main(int argc, char **argv)
{
	const int status = stranger_reader_main(argc, argv);
	uint8_t *memory = mmap(NULL, 203 * PAGE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	struct live_code *code = live_code_new(100);
	struct error err = {0};

	if (status >= 0)
		return status;
	if (geteuid()) {
		SKIP("a child that reads its parent's memory: needs root");
		return checks_done();
	}
	munmap(memory + 2 * PAGE, PAGE);
	CHECK(code && stranger_reader_start(&err));
	check_reads(code, memory);
	check_bound(code, memory + 3 * PAGE);
	stranger_reader_stop();
	live_code_free(code);
	munmap(memory, 203 * PAGE);
	return checks_done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a parser that a file has taken over may answer: what passes the check can be used. */
#include "node-agent/unwind/row_messages.h"

#include <sys/socket.h>
#include <unistd.h>

#include "node-agent/unwind/row_pages.h"
#include "tests/fuzz/fuzz.h"

static void use(struct row_pages *pages, const struct page_rows *rows)
{
	struct unwind_rule rule;

	if (!row_pages_put(pages, rows, 1))
		abort(); /* an empty table has room for any page */
	if (rows->state != UNWIND_PAGE_LOADED)
		return;
	for (uint32_t low = 0; low < 0x10000; low += 0xff) {
		uint64_t address = (uint64_t)rows->page << UNWIND_PAGE_BITS | low;

		if (!row_pages_rule(pages, rows->executable, address, &rule) ||
		    rule.cfa >= UNWIND_CFA_COUNT || rule.cfa_register >= UNWIND_REGISTERS)
			abort();
	}
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	const struct row_pages_options options = {-1, -1, -1, 1 << 20};
	char farewell[ROW_FAREWELL_MAX];
	struct row_pages *pages;
	struct page_rows *rows;
	uint16_t cpu_ms;
	int sockets[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) < 0)
		return;
	rows = malloc(sizeof *rows);
	pages = row_pages_new(&options, NULL);
	if (rows && pages && send(sockets[1], bytes, length, MSG_DONTWAIT) == (ssize_t)length &&
	    row_answer_receive(sockets[0], rows, &cpu_ms, farewell) == ROW_RECEIVED_ANSWER)
		use(pages, rows);
	row_pages_free(pages);
	free(rows);
	close(sockets[0]);
	close(sockets[1]);
}

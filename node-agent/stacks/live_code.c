/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/stacks/live_code.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node-agent/kernel/stranger_reader.h"
#include "node-agent/processes/process_files.h"

enum {
	PAGE = 4096,
	PAGES = 64,
	LENGTH_MAX = 512,
};

#define KEPT_NS UINT64_C(1000000000)

struct place { /* of a page */
	uint64_t address, start_time_ns;
	uint32_t tgid;
};

struct page {
	struct place place;
	uint64_t read_ns; /* 0: never */
	bool is_there;
	uint8_t bytes[PAGE];
};

struct live_code {
	struct page pages[PAGES];
	uint64_t second_ns; /* began then */
	uint32_t limit, reads, next;
};

struct live_code *live_code_new(uint32_t reads)
{
	struct live_code *code = calloc(1, sizeof *code);

	if (code)
		code->limit = reads;
	return code;
}

void live_code_free(struct live_code *code)
{
	free(code);
}

static bool is_allowed(struct live_code *code, uint64_t now_ns)
{
	if (now_ns - code->second_ns >= KEPT_NS) {
		code->second_ns = now_ns;
		code->reads = 0;
	}
	return code->reads++ < code->limit;
}

static struct page *page_find(struct live_code *code, const struct place *place, uint64_t now_ns,
			      uint64_t since_ns)
{
	for (uint32_t i = 0; i < PAGES; i++) {
		struct page *page = &code->pages[i];

		if (page->read_ns && page->place.address == place->address &&
		    page->place.tgid == place->tgid &&
		    page->place.start_time_ns == place->start_time_ns &&
		    now_ns - page->read_ns < KEPT_NS && page->read_ns >= since_ns)
			return page;
	}
	return NULL;
}

/* What is not there is known for a moment, too. */
static struct page *page_read(struct live_code *code, const struct place *place, uint64_t now_ns)
{
	struct page *page = &code->pages[code->next++ % PAGES];
	int directory = process_directory_open("/proc", place->tgid, place->start_time_ns);

	page->place = *place;
	page->read_ns = now_ns;
	page->is_there = directory >= 0 && stranger_memory_read(directory, place->address,
								page->bytes, sizeof page->bytes);
	if (directory >= 0)
		close(directory);
	return page;
}

bool live_code_read(struct live_code *code, uint32_t tgid, uint64_t start_time_ns, uint64_t now_ns,
		    uint64_t since_ns, uint64_t address, void *to, size_t length)
{
	const size_t at = address % PAGE, first = length < PAGE - at ? length : PAGE - at;
	const struct place place = {address - at, start_time_ns, tgid};
	const struct page *page;

	if (!length || length > LENGTH_MAX || !now_ns)
		return false;
	page = page_find(code, &place, now_ns, since_ns);
	if (!page && is_allowed(code, now_ns))
		page = page_read(code, &place, now_ns);
	if (!page || !page->is_there)
		return false;
	memcpy(to, page->bytes + at, first);
	return first == length ||
	       live_code_read(code, tgid, start_time_ns, now_ns, since_ns, address + first,
			      (uint8_t *)to + first, length - first);
}

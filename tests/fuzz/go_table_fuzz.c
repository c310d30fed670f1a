/* SPDX-License-Identifier: Apache-2.0 */
/* An ELF file's Go table: the rows of its first pages are in order and within their enums. */
#include "node-agent/file_parser/go/go_labels.h"
#include "node-agent/file_parser/go/go_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

enum { PAGES = 4 };

static bool take(void *context, uint64_t start, uint64_t end, const struct unwind_rule *rule)
{
	uint64_t *last = context;

	if (start < *last || start >= end || rule->cfa >= UNWIND_CFA_COUNT ||
	    rule->fp >= UNWIND_FP_COUNT || rule->ra >= UNWIND_RA_COUNT)
		abort();
	*last = end;
	return true;
}

static void fuzz_pages(const struct code_file *file, struct go_table *table)
{
	for (unsigned i = 0; i < file->segment_count && i < 4; i++) {
		uint64_t page = file->segments[i].p_vaddr & ~UINT64_C(0xffff);

		for (int j = 0; j < PAGES && page <= UINT64_MAX - 0x10000; j++, page += 0x10000) {
			uint64_t last = 0;

			go_table_pieces(table, page, page + 0x10000, take, &last);
		}
	}
}

static void fuzz_memory(const struct code_file *file, struct go_table *table)
{
	struct memory_places places = {0};

	go_memory_places(file, table, &places);
	if (places.count > 3)
		abort();
	for (uint32_t i = 0; i < places.count; i++)
		if (!places.items[i].at || places.items[i].kind >= MEMORY_PLACE_KINDS)
			abort();
}

static void fuzz_labels(const struct code_file *file, struct go_table *table)
{
	struct go_labels_place place;

	go_labels_find(file, table, &place);
	if (place.is_defined > 1 || place.is_list > 1 || (place.is_defined && !place.labels))
		abort();
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	int fd = memfd_create("go_table", MFD_CLOEXEC);
	enum row_failure failure = ROW_FAILURE_NONE;
	struct code_file file;
	struct go_table *table;

	if (fd < 0)
		abort();
	if (write(fd, bytes, length) == (ssize_t)length && code_file_open(&file, fd)) {
		table = go_table_open(&file, &failure);
		if (!table && failure >= ROW_FAILURE_COUNT)
			abort();
		if (table)
			fuzz_pages(&file, table);
		if (table)
			fuzz_memory(&file, table);
		if (table)
			fuzz_labels(&file, table);
		go_table_close(table);
		code_file_close(&file);
	}
	close(fd);
}

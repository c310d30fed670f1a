/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of an ELF file's first pages, and of those that its segments of code lie on. */
#include "node-agent/file_parser/unwind_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include "node-agent/file_parser/code/code_file.h"
#include "tests/fuzz/fuzz.h"

static struct page_rows rows;

static void check_page(struct unwind_file *file, uint32_t page)
{
	unwind_file_page(file, page, &rows);
	if (rows.page != page || rows.state < UNWIND_PAGE_LOADED ||
	    rows.state > UNWIND_PAGE_FAILED ||
	    (rows.state == UNWIND_PAGE_LOADED) != (rows.count > 0) ||
	    (rows.state == UNWIND_PAGE_FAILED) != (rows.failure != ROW_FAILURE_NONE) ||
	    rows.count > UNWIND_PAGE_ROWS_MAX || rows.rule_count > PAGE_RULES_MAX ||
	    (rows.count && rows.rows[0].low))
		abort();
	for (uint32_t i = 0; i < rows.count; i++)
		if (rows.rows[i].rule >= rows.rule_count ||
		    (i && rows.rows[i].low <= rows.rows[i - 1].low))
			abort();
	for (uint32_t i = 0; i < rows.rule_count; i++)
		if (rows.rules[i].cfa >= UNWIND_CFA_COUNT || rows.rules[i].fp >= UNWIND_FP_COUNT ||
		    rows.rules[i].ra >= UNWIND_RA_COUNT ||
		    rows.rules[i].cfa_register >= UNWIND_REGISTERS)
			abort();
}

/* Where somebody says that its code begins. */
static void check_functions(struct unwind_file *file, const struct code_file *code)
{
	struct memory_functions functions = {.count = 1, .items = {{0, MEMORY_MALLOC}}};
	struct memory_places places = {0};

	for (unsigned i = 0; i < code->segment_count && i < 8; i++)
		functions.items[functions.count++] =
			(struct memory_function){code->segments[i].p_vaddr, MEMORY_CALLOC};
	unwind_file_memory(file, &places);
	unwind_file_functions(file, &functions, &places);
	if (places.count > MEMORY_PLACES_MAX || places.refused > functions.count ||
	    places.nameless.length > BUILD_ID_MAX)
		abort();
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	int fd = memfd_create("unwind_file", MFD_CLOEXEC);
	struct unwind_file *file;
	struct code_file code;

	if (fd < 0 || write(fd, bytes, length) != (ssize_t)length)
		abort();
	file = unwind_file_open(fd);
	if (!file)
		abort();
	for (uint32_t page = 0; page < 3; page++)
		check_page(file, page);
	if (code_file_open(&code, fd)) {
		for (unsigned i = 0; i < code.segment_count && i < 8; i++)
			if (code.segments[i].p_flags & PF_X)
				check_page(file, (uint32_t)(code.segments[i].p_vaddr >>
							    UNWIND_PAGE_BITS));
		check_functions(file, &code);
		code_file_close(&code);
	}
	unwind_file_close(file);
}

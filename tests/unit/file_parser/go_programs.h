/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of the Go compilers found here, and the pieces that go_table makes of them. */
#ifndef TESTS_UNIT_UNWIND_GO_PROGRAMS_H
#define TESTS_UNIT_UNWIND_GO_PROGRAMS_H

#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node-agent/file_parser/go/go_table.h"
#include "tests/check.h"

enum { PAGE = 1 << UNWIND_PAGE_BITS, PIECES_MAX = 1 << 18 };

struct piece {
	uint64_t start, end;
	struct unwind_rule rule;
};
static struct piece *pieces;
static size_t piece_count;
static bool ascending;

static bool take_piece(void *context, uint64_t start, uint64_t end, const struct unwind_rule *rule)
{
	uint64_t page = *(uint64_t *)context, page_end = page + PAGE;
	struct piece *last = piece_count ? &pieces[piece_count - 1] : NULL;

	if (start >= end || rule->cfa >= UNWIND_CFA_COUNT || rule->fp >= UNWIND_FP_COUNT)
		ascending = false;
	start = start < page ? page : start;
	end = end > page_end ? page_end : end;
	if (last && last->end > start)
		ascending = false;
	if (last && last->end == start && !memcmp(&last->rule, rule, sizeof *rule))
		last->end = end;
	else if (start < end && piece_count < PIECES_MAX)
		pieces[piece_count++] = (struct piece){start, end, *rule};
	return true;
}

/* Page by page, as the rows are asked for. */
static enum row_failure load(int fd)
{
	struct code_file file;
	struct go_table *table;
	enum row_failure failure = ROW_FAILURE_NOT_CODE;

	piece_count = 0;
	ascending = true;
	if (!code_file_open(&file, fd))
		return failure;
	table = go_table_open(&file, &failure);
	for (unsigned i = 0; table && i < file.segment_count; i++) {
		const Elf64_Phdr *segment = &file.segments[i];

		for (uint64_t page = segment->p_vaddr & -(uint64_t)PAGE;
		     segment->p_type == PT_LOAD && segment->p_flags & PF_X &&
		     page - segment->p_vaddr + PAGE < segment->p_filesz + 2 * PAGE &&
		     failure == ROW_FAILURE_NONE;
		     page += PAGE)
			failure = go_table_pieces(table, page, page + PAGE, take_piece, &page);
	}
	if (!table && failure == ROW_FAILURE_NONE)
		failure = ROW_FAILURE_COUNT; /* not a Go program */
	go_table_close(table);
	code_file_close(&file);
	return failure;
}

static inline enum row_failure load_path(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	enum row_failure failure = load(fd);

	if (fd >= 0)
		close(fd);
	return failure;
}

static inline const struct piece *find(uint64_t address)
{
	size_t low = 0, high = piece_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (pieces[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < piece_count && pieces[low].start <= address ? &pieces[low] : NULL;
}

/* --- programs --- */

static char folder[] = "/tmp/go_programs.XXXXXX";

__attribute__((format(printf, 1, 2))) static bool run(const char *format, ...)
{
	char command[1024];
	va_list list;
	int status;

	va_start(list, format);
	vsnprintf(command, sizeof command, format, list);
	va_end(list);
	status = system(command);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

__attribute__((unused, format(printf, 1, 2))) static FILE *listing(const char *format, ...)
{
	char command[1024];
	va_list list;

	va_start(list, format);
	vsnprintf(command, sizeof command, format, list);
	va_end(list);
	return popen(command, "r");
}

/* What one built program is to be compared with. */
struct program {
	const char *name, *options;
	bool cgo;
};
static const struct program programs[] = {
	{"static", "", false},
	{"pie", "-buildmode=pie", false},
	{"cgo", "", true},
	{"cgo_pie", "-buildmode=pie", true},
};

static bool build(const char *go, const struct program *program, char *path, size_t size)
{
	snprintf(path, size, "%s/%s", folder, program->name);
	return run("out=%s && cd tests/programs/unwind/go && "
		   "export GOTOOLCHAIN=local GOCACHE=\"${GOCACHE:-${XDG_CACHE_HOME:-${HOME:-%s}/"
		   ".cache}/go-build}\" && "
		   "CGO_ENABLED=%d %s build -buildvcs=false %s -o $out . >/dev/null 2>&1",
		   path, folder, program->cgo, go, program->options);
}

/* Calls test() with each compiler, in a folder that is gone afterwards. */
static void each_compiler(void (*test)(const char *go))
{
	static const char *const places[] = {"/usr/lib/go-*/bin/go", "/usr/local/go*/bin/go"};
	glob_t found = {0};

	pieces = malloc(PIECES_MAX * sizeof *pieces);
	CHECK(pieces && mkdtemp(folder));
	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		glob(places[i], i ? GLOB_APPEND : 0, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++)
		test(found.gl_pathv[i]);
	if (!found.gl_pathc && run("command -v go >/dev/null"))
		test("go");
	else if (!found.gl_pathc)
		SKIP("no go compiler");
	globfree(&found);
	CHECK(run("rm -r %s", folder));
}

#endif

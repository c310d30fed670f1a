/* SPDX-License-Identifier: Apache-2.0 */
/* print_rows FILE: the unwind rows of all of a file's code, one line each: the address they hold
 * from, and the rule. print_rows --time FILE…: what making them took of CPU time, per file. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "node-agent/file_parser/code/code_file.h"
#include "node-agent/file_parser/unwind_file.h"

static struct page_rows rows;

static void print_rule(const struct unwind_rule *rule)
{
	static const char *const names[] = {
		[UNWIND_CFA_NONE] = "none",           [UNWIND_CFA_END] = "end",
		[UNWIND_CFA_REGISTER] = "register",   [UNWIND_CFA_PLT] = "plt",
		[UNWIND_CFA_DEREF] = "deref",         [UNWIND_CFA_SIGNAL] = "signal",
		[UNWIND_CFA_GO_SWITCH] = "go_switch", [UNWIND_CFA_GO_GOROUTINE] = "go_goroutine"};
	static const char *const fps[] = {[UNWIND_FP_SAME] = "same",
					  [UNWIND_FP_AT_CFA] = "at_cfa",
					  [UNWIND_FP_AT_FP] = "at_fp",
					  [UNWIND_FP_UNDEFINED] = "undefined"};
	static const char *const ras[] = {
		[UNWIND_RA_AT_CFA] = "at_cfa", [UNWIND_RA_IN_REGISTER] = "in_register"};

	printf(" %s %d %d %d %s %d %s %d %d %d\n", names[rule->cfa], rule->cfa_register,
	       rule->cfa_offset, rule->cfa_add, fps[rule->fp], rule->fp_offset, ras[rule->ra],
	       rule->ra_offset, rule->flags, rule->kept);
}

static void print_page(void)
{
	uint64_t base = (uint64_t)rows.page << UNWIND_PAGE_BITS;

	if (rows.state != UNWIND_PAGE_LOADED) {
		printf("%llx page state %d failure %d\n", (unsigned long long)base, rows.state,
		       rows.failure);
		return;
	}
	for (uint32_t i = 0; i < rows.count; i++) {
		printf("%llx", (unsigned long long)(base + rows.rows[i].low));
		print_rule(&rows.rules[rows.rows[i].rule]);
	}
}

struct totals {
	unsigned pages, loaded, failed, rows_max, rules_max;
	uint64_t rows, ns, ns_max;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void make_page(struct unwind_file *file, uint32_t page, struct totals *totals)
{
	uint64_t before = now_ns(), took;

	unwind_file_page(file, page, &rows);
	took = now_ns() - before;
	totals->ns += took;
	totals->ns_max = took > totals->ns_max ? took : totals->ns_max;
	totals->pages++;
	totals->loaded += rows.state == UNWIND_PAGE_LOADED;
	totals->failed += rows.state == UNWIND_PAGE_FAILED;
	totals->rows += rows.count;
	totals->rows_max = rows.count > totals->rows_max ? rows.count : totals->rows_max;
	totals->rules_max = rows.rule_count > totals->rules_max ? rows.rule_count
								: totals->rules_max;
}

static int each_page(const char *path, struct totals *totals, bool prints)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t before = now_ns(), opened, next = 0;
	struct unwind_file *file;
	struct code_file code;

	if (!code_file_open(&code, fd)) {
		fprintf(stderr, "%s: not a file with code\n", path);
		return 1;
	}
	file = unwind_file_open(fd);
	opened = now_ns() - before;
	for (unsigned i = 0; i < code.segment_count; i++) {
		const Elf64_Phdr *segment = &code.segments[i];
		uint64_t end = segment->p_vaddr + segment->p_memsz;

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		if (next < segment->p_vaddr >> UNWIND_PAGE_BITS)
			next = segment->p_vaddr >> UNWIND_PAGE_BITS;
		for (; next << UNWIND_PAGE_BITS < end; next++) {
			make_page(file, (uint32_t)next, totals);
			if (prints)
				print_page();
		}
	}
	if (!prints)
		printf("%-28s %5u pages %4u without %3u failed %8llu rows %5.0f/page max %5u "
		       "%5u rules max %7.3f ms/page max %7.3f, opened in %8.3f ms, %8zu bytes\n",
		       strrchr(path, '/') ? strrchr(path, '/') + 1 : path, totals->pages,
		       totals->pages - totals->loaded, totals->failed,
		       (unsigned long long)totals->rows,
		       totals->loaded ? (double)totals->rows / totals->loaded : 0, totals->rows_max,
		       totals->rules_max,
		       totals->pages ? (double)totals->ns / totals->pages / 1e6 : 0,
		       (double)totals->ns_max / 1e6, (double)opened / 1e6, unwind_file_bytes(file));
	code_file_close(&code);
	unwind_file_close(file);
	return 0;
}

int main(int argc, char **argv)
{
	int failed = 0;

	if (argc == 2 && strcmp(argv[1], "--time") != 0)
		return each_page(argv[1], &(struct totals){0}, true);
	for (int i = 2; i < argc; i++)
		failed |= each_page(argv[i], &(struct totals){0}, false);
	return failed;
}

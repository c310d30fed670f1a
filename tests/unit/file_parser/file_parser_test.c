/* SPDX-License-Identifier: Apache-2.0 */
/* What the parser's child says of real files, and of bytes that are none. */
#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "common/log.h"
#include "node-agent/file_parser/unwind_file.h"
#include "tests/unit/file_parser/asking.h"

static uint32_t page_of(const void *address, const void *image)
{
	return (uint32_t)(((uintptr_t)address - (uintptr_t)image) >> UNWIND_PAGE_BITS);
}

extern const char image_start[] __asm__("__executable_start");

/* --- tests --- */

static void test_real_pages(void)
{
	struct file_parser *parser = file_parser_new(NULL);
	static struct page_rows direct;
	struct unwind_file *file = unwind_file_open(dup(own_file));
	uint32_t here = page_of((const void *)test_real_pages, image_start), same = 0, loaded = 0;
	const struct page_rows *rows;

	CHECK_NUMBER(file_parser_fd(parser), -1);
	CHECK(!file_parser_next(parser, monotonic_ms()));
	for (uint32_t page = 0; page < 16; page++) {
		CHECK(ask(parser, REAL, here + page));
		rows = wait_answer(parser);
		unwind_file_page(file, here + page, &direct);
		same += rows && rows->executable == REAL && rows->page == here + page &&
			rows->state == direct.state && rows->count == direct.count &&
			rows->rule_count == direct.rule_count &&
			!memcmp(rows->rows, direct.rows, direct.count * sizeof *direct.rows) &&
			!memcmp(rows->rules, direct.rules,
				direct.rule_count * sizeof *direct.rules);
		loaded += rows && rows->state == UNWIND_PAGE_LOADED;
		if (page == 0)
			CHECK(rows && page_rows_find(rows, (uintptr_t)test_real_pages -
								   (uintptr_t)image_start));
	}
	CHECK_NUMBER(same, 16);
	CHECK(loaded > 0);
	CHECK(ask(parser, REAL, 0xffff0000));
	CHECK(is_answer(wait_answer(parser), REAL, 0xffff0000, UNWIND_PAGE_EMPTY));
	CHECK_NUMBER(counters_of(parser).started, 1);
	CHECK_NUMBER(counters_of(parser).waiting, 0);
	unwind_file_close(file);
	file_parser_free(parser);
	file_parser_free(NULL);
}

static int file_of(const void *bytes, size_t length)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	if (write(fd, bytes, length) != (ssize_t)length)
		CHECK(!"write");
	return fd;
}

/* Files that are none, cut, or with any bytes but the first few: an answer for each, and the child
 * lives, or fails that page alone. */
static void test_garbage(void)
{
	enum { BYTES = 1 << 20, FILES = 40 };
	struct file_parser *parser = file_parser_new(NULL);
	uint8_t *bytes = malloc(BYTES);
	ssize_t length = pread(own_file, bytes, BYTES, 0);
	uint32_t answered = 0, random = 1, here = page_of((const void *)test_garbage, image_start);
	int fd = file_of("no ELF at all", 13), pipes[2];

	CHECK(file_parser_ask(parser, 1, fd, 0, monotonic_ms()));
	CHECK(is_failure(wait_answer(parser), 1, 0, ROW_FAILURE_NOT_CODE));
	close(fd);
	CHECK(pipe(pipes) == 0 && file_parser_ask(parser, 2, pipes[0], 0, monotonic_ms()));
	CHECK(is_failure(wait_answer(parser), 2, 0, ROW_FAILURE_NOT_CODE));
	close(pipes[0]);
	close(pipes[1]);
	CHECK(!file_parser_ask(parser, 3, -1, 0, monotonic_ms()));
	CHECK(!file_parser_ask(parser, 0, own_file, 0, monotonic_ms()));
	for (uint32_t i = 0; i < FILES && length > 4096; i++) {
		const struct page_rows *rows;

		for (int j = 0; j < 2000; j++) {
			random = random * 1664525 + 1013904223;
			bytes[64 + (random >> 8) % ((uint32_t)length - 64)] = (uint8_t)random;
		}
		fd = file_of(bytes, (size_t)length / (i % 4 + 1));
		CHECK(file_parser_ask(parser, 10 + i, fd, here, monotonic_ms()));
		close(fd); /* the parser has its own */
		rows = wait_answer(parser);
		answered += rows && rows->executable == 10 + i && rows->page == here;
	}
	CHECK_NUMBER(answered, FILES);
	free(bytes);
	file_parser_free(parser);
}

static void test_stopped_and_killed(void)
{
	struct file_parser *parser = file_parser_new(NULL);
	struct file_parser_counters counters;
	pid_t child;

	CHECK(ask(parser, REAL, 0) && wait_answer(parser));
	child = child_of();
	CHECK(child > 0 && kill(child, SIGSTOP) == 0);
	for (uint32_t page = 1; page <= 6; page++)
		CHECK(ask(parser, REAL, page));
	CHECK(!file_parser_next(parser, monotonic_ms() + 1000));
	CHECK(is_failure(file_parser_next(parser, monotonic_ms() + 2100), REAL, 1, ROW_FAILURE_WORKER));
	for (uint32_t page = 2; page <= 6; page++) {
		const struct page_rows *rows = wait_answer(parser);

		CHECK(rows && rows->page == page && rows->failure == ROW_FAILURE_NONE);
	}
	CHECK(child_of() != child);
	CHECK_NUMBER(counters_of(parser).killed, 1);

	kill(child_of(), SIGSTOP);
	for (uint32_t page = 11; page <= 13; page++)
		CHECK(ask(parser, REAL, page));
	kill(child_of(), SIGKILL);
	CHECK(is_failure(wait_answer(parser), REAL, 11, ROW_FAILURE_WORKER));
	for (uint32_t page = 12; page <= 13; page++) {
		const struct page_rows *rows = wait_answer(parser);

		CHECK(rows && rows->page == page && rows->failure == ROW_FAILURE_NONE);
	}
	counters = counters_of(parser);
	CHECK_NUMBER(counters.died, 1);
	CHECK_NUMBER(counters.started, 3);
	CHECK(counters.cpu_ns > 0);
	file_parser_free(parser);
	CHECK(waitpid(-1, NULL, WNOHANG) < 0);
}

static bool is_same_segment(const struct elf_segment *a, const struct elf_segment *b)
{
	return a->offset == b->offset && a->file_size == b->file_size && a->address == b->address &&
	       a->memory_size == b->memory_size && a->is_executable == b->is_executable;
}

/* The child says of real files what their bytes say here. */
static void test_files(void)
{
	struct file_parser *parser = new_file_worker();
	static struct file_content direct;
	int text = file_of("no ELF at all", 13);

	CHECK(file_content_read(own_file, &direct, NULL) && direct.is_elf);
	CHECK(ask_file(parser, 1, own_file) && wait_told(parser, 1));
	CHECK(told.number == 1 && told.content.is_elf);
	CHECK(build_id_equal(&told.content.image.gnu, &direct.image.gnu) &&
	      build_id_equal(&told.content.htlhash, &direct.htlhash));
	CHECK(told.content.image.entry == direct.image.entry);
	CHECK_NUMBER(told.content.image.segment_count, direct.image.segment_count);
	for (unsigned i = 0; i < direct.image.segment_count; i++)
		CHECK(is_same_segment(&told.content.image.segments[i], &direct.image.segments[i]));
	CHECK(ask_file(parser, 2, text) && wait_told(parser, 2));
	CHECK(told.number == 2 && !told.content.is_elf && !told.failed);
	CHECK(file_content_read(text, &direct, NULL) &&
	      build_id_equal(&told.content.htlhash, &direct.htlhash));
	for (uint32_t i = 3; i < 60; i++)
		CHECK(ask_file(parser, i, own_file));
	CHECK(wait_told(parser, 59) && told.number == 59 && !told.failed);
	CHECK(!ask_file(parser, 0, own_file) && !ask_file(parser, FILE_PARSER_NUMBERS, own_file));
	CHECK_NUMBER(counters_of(parser).started, 1);
	close(text);
	file_parser_free(parser);
}

/* In their order, from more files than the child keeps open and as many as can be asked for. */
static void test_many(void)
{
	enum { ASKS = 1000 };
	struct file_parser *parser = file_parser_new(NULL);
	uint32_t asked = 0, answered = 0, most = 0, refused = 0;
	const struct page_rows *rows;

	while (answered < ASKS) {
		while (asked < ASKS && ask(parser, REAL + asked % 50, asked))
			asked++;
		refused += asked < ASKS;
		if (counters_of(parser).waiting > most)
			most = counters_of(parser).waiting;
		rows = wait_answer(parser);
		if (!rows || rows->executable != REAL + answered % 50 || rows->page != answered ||
		    rows->failure)
			break;
		answered++;
	}
	CHECK_NUMBER(answered, ASKS);
	CHECK_NUMBER(most, 256);
	CHECK(refused > 0);
	CHECK_NUMBER(counters_of(parser).asked, ASKS);
	CHECK_NUMBER(counters_of(parser).started, 1);
	file_parser_free(parser);
}

static int count_descriptors(const char *of)
{
	DIR *folder = opendir(of);
	int count = 0;

	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	return count - 2;
}

/* As /proc shows the child. */
/* --- of runtimes --- */

static struct {
	unsigned count, failed;
	uint32_t executable, language;
} ran;

static void take_runtime(void *context, uint32_t executable, const struct runtime_symbols *runtime)
{
	(void)context;
	ran.count++;
	ran.failed += !runtime;
	ran.executable = executable;
	ran.language = runtime ? runtime->language : 77;
}

static void test_runtime(void)
{
	struct file_parser *parser = file_parser_new(NULL);

	file_parser_set_runtime(parser, take_runtime, NULL);
	CHECK(file_parser_ask_runtime(parser, REAL, own_file, monotonic_ms()));
	CHECK(ask(parser, REAL, 0) && wait_answer(parser));
	CHECK(ran.count == 1 && ran.executable == REAL && !ran.failed && !ran.language);
	CHECK(file_parser_ask_runtime(parser, REAL, own_file, monotonic_ms()));
	kill(child_of(), SIGKILL);
	CHECK(ask(parser, REAL, 1) && wait_answer(parser));
	CHECK(ran.count == 2);
	file_parser_free(parser);
}

static void test_child_from_outside(void)
{
	struct file_parser *parser = file_parser_new(NULL);
	int leak = dup(own_file), before; /* without O_CLOEXEC */
	char path[64], text[4096] = "";
	FILE *file;

	CHECK(leak > 3 && ask(parser, REAL, 0) && wait_answer(parser));
	before = count_descriptors("/proc/self/fd");
	for (uint32_t i = 1; i < 40; i++)
		CHECK(ask(parser, REAL + i, 0) && wait_answer(parser));
	CHECK_NUMBER(count_descriptors("/proc/self/fd"), before);
	snprintf(path, sizeof path, "/proc/%d/fd", child_of());
	if (geteuid() == 0)
		CHECK_NUMBER(count_descriptors(path), 4 + 16);
	else
		SKIP("another user's descriptors are seen by root only");
	snprintf(path, sizeof path, "/proc/%d/status", child_of());
	file = fopen(path, "r");
	text[file ? fread(text, 1, sizeof text - 1, file) : 0] = '\0';
	if (file)
		fclose(file);
	CHECK(strstr(text, "Name:\tfarflame-parser\n"));
	CHECK(strstr(text, "NoNewPrivs:\t1\n"));
	CHECK(strstr(text, "Seccomp:\t2\n"));
	CHECK(strstr(text, "CapEff:\t0000000000000000\n"));
	CHECK(strstr(text, "CapPrm:\t0000000000000000\n"));
	snprintf(path, sizeof path, "Uid:\t%u\t", 0x7fc00000u | (unsigned)child_of());
	if (geteuid() == 0)
		CHECK(strstr(text, path));
	close(leak);
	file_parser_free(parser);
}

int main(int argc, char **argv)
{
	int status = file_parser_main(argc, argv);

	if (status >= 0)
		return status;
	log_set_level(LOG_ERROR);
	own_file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	test_real_pages();
	test_garbage();
	test_stopped_and_killed();
	test_files();
	test_many();
	test_runtime();
	test_child_from_outside();
	close(own_file);
	return checks_done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A perf map of this process' own: found, read in pieces and as it grows, begun anew, not believed,
 * given up. The parser is made up: it answers when it is told to. */
#include "node-agent/runtimes/jit_files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "node-agent/file_parser/jit/jit_file.h"
#include "node-agent/kernel/stranger_reader.h"
#include "node-agent/processes/processes.h"
#include "tests/check.h"

static char path[64];
static struct processes *processes;
static struct jit_files *files;
static struct process_key key;
static int64_t now_ms = 1000000;

/* --- the parser --- */

static file_parser_jit on_answer;
static void *on_answer_context;
static struct question {
	bool is_there;
	uint32_t number;
	int fd;
	struct file_parser_piece piece;
} question;
static uint32_t asked;

void code_pages_set_jit(struct code_pages *pages, file_parser_jit jit, void *context)
{
	(void)pages;
	on_answer = jit;
	on_answer_context = context;
}

bool code_pages_ask_jit(struct code_pages *pages, uint32_t number, int fd,
			const struct file_parser_piece *piece)
{
	(void)pages;
	asked++;
	question = (struct question){true, number, fd, *piece};
	return true;
}

/* Until nothing is asked any more. */
static void answer_all(void)
{
	static struct jit_chunk chunk;

	while (question.is_there) {
		const struct question asked_for = question;

		question.is_there = false;
		jit_file_read(asked_for.fd, asked_for.piece.format, asked_for.piece.offset,
			      asked_for.piece.limit, &chunk);
		on_answer(on_answer_context, asked_for.number, &chunk);
	}
}

/* --- the process --- */

static void write_map(const char *mode, const char *text)
{
	FILE *file = fopen(path, mode);

	CHECK(file && fputs(text, file) >= 0 && !fclose(file));
}

static const char *name_at(uint64_t address)
{
	struct jit_name name;

	processes_for_sample(processes, &key, monotonic_ns());
	return jit_files_find(files, &key, address, monotonic_ns(), &name) == JIT_FOUND
		       ? name.function
		       : "none";
}

/* Everything that is due so much later. */
static void pass(int64_t ms)
{
	name_at(0);
	jit_files_run(files, now_ms += ms);
}

static struct jit_files_counters counters_of(void)
{
	struct jit_files_counters counters;

	jit_files_counters(files, &counters);
	return counters;
}

static void begin(void)
{
	unlink(path);
	asked = 0;
	question.is_there = false;
	processes = processes_new(100, NULL);
	files = jit_files_new(processes, NULL, NULL);
	jit_files_run(files, now_ms += 10000);
}

static void end(void)
{
	jit_files_free(files);
	processes_free(processes);
	unlink(path);
	CHECK(!on_answer);
}

/* --- tests --- */

static void test_growth(void)
{
	begin();
	CHECK_TEXT(name_at(0x1000), "none");
	CHECK(jit_files_is_coming(files, &key, monotonic_ns(), false)); /* nobody has looked yet */
	pass(0);
	CHECK(!jit_files_is_coming(files, &key, monotonic_ns(), false));
	CHECK_NUMBER(asked, 0);
	write_map("w", "1000 10 one\n2000 10 unfini");
	pass(1000);
	CHECK_NUMBER(asked, 1);
	CHECK_NUMBER(question.piece.offset, 0);
	CHECK_NUMBER(question.piece.limit, 26);
	CHECK(jit_files_is_coming(files, &key, monotonic_ns(), false)); /* it is being read */
	CHECK_TEXT(name_at(0x1000), "none");
	answer_all();
	CHECK_TEXT(name_at(0x1000), "one");
	CHECK_TEXT(name_at(0x2000), "none");
	pass(1000); /* nothing has come */
	CHECK_NUMBER(question.is_there, false);
	write_map("a", "shed\n3000 10 three\n");
	pass(1000);
	CHECK_NUMBER(question.piece.offset, 12); /* what is new alone */
	answer_all();
	CHECK_TEXT(name_at(0x2000), "unfinished");
	CHECK_TEXT(name_at(0x3000), "three");
	CHECK_NUMBER(counters_of().maps, 1);
	CHECK_NUMBER(counters_of().entries, 3);
	CHECK_NUMBER(counters_of().processes, 1);
	end();
}

/* Those that wait do so until what was there by their time is read, and not longer. */
static void test_coming(void)
{
	uint64_t before, after;

	begin();
	write_map("w", "1000 10 one\n");
	pass(0);
	answer_all();
	before = monotonic_ns() - 1000000000;
	after = monotonic_ns() + 1000;
	CHECK(!jit_files_is_coming(files, &key, before, false));
	CHECK(jit_files_is_coming(files, &key, after, false));
	usleep(1000);
	pass(1000);
	CHECK(!jit_files_is_coming(files, &key, after, false));
	pass(300); /* not due yet */
	CHECK(jit_files_is_coming(files, &key, monotonic_ns(), true));
	write_map("a", "2000 10 two\n");
	pass(0);
	CHECK(question.is_there); /* but for those in a hurry */
	answer_all();
	processes_exit(processes, key.tgid, monotonic_ns());
	CHECK(!jit_files_is_coming(files, &key, monotonic_ns() + 1000, false));
	CHECK_TEXT(name_at(0x1000), "one"); /* what is known stays for late samples */
	end();
}

static void test_begun_anew(void)
{
	char other[80];

	begin();
	write_map("w", "1000 10 first_program\n1010 10 b\n");
	pass(0);
	answer_all();
	CHECK_TEXT(name_at(0x1010), "b");
	write_map("w", "1000 10 second\n"); /* shorter */
	pass(1000);
	answer_all();
	CHECK_TEXT(name_at(0x1000), "second");
	CHECK_TEXT(name_at(0x1010), "none");
	snprintf(other, sizeof other, "%s.other", path);
	CHECK(!rename(path, other));
	write_map("w", "1000 10 third, of another file\n");
	unlink(other);
	pass(1000);
	answer_all();
	CHECK_TEXT(name_at(0x1000), "third, of another file");
	CHECK_NUMBER(counters_of().maps, 3);
	end();
}

static void test_not_believed(void)
{
	const struct timespec old[2] = {{1000000000, 0}, {1000000000, 0}};

	begin();
	CHECK(!symlink("/etc/passwd", path));
	pass(0);
	CHECK_NUMBER(counters_of().foreign, 1);
	CHECK_NUMBER(asked, 0);
	end();
	begin();
	CHECK(!mkfifo(path, 0600));
	pass(0);
	CHECK_NUMBER(counters_of().foreign, 1);
	end();
	begin();
	write_map("w", "1000 10 old\n");
	CHECK(!utimensat(AT_FDCWD, path, old, 0));
	pass(0);
	CHECK_NUMBER(counters_of().foreign, 1);
	CHECK_NUMBER(asked, 0);
	end();
	if (getuid()) {
		SKIP("another user's file: needs root");
		return;
	}
	key.start_time_ns = 0;
	begin();
	write_map("w", "1000 10 another's\n");
	CHECK(!chown(path, 65534, 65534));
	pass(0);
	CHECK_NUMBER(counters_of().foreign, 1);
	CHECK_NUMBER(asked, 0);
	end();
}

static void test_given_up(void)
{
	begin();
	write_map("w", "1000 10 one\n");
	pass(0);
	question.is_there = false; /* nobody answers */
	pass(1000);
	CHECK_NUMBER(asked, 1);
	pass(10000);
	CHECK_NUMBER(asked, 2);
	question.is_there = false;
	on_answer(on_answer_context, question.number, NULL);
	CHECK_NUMBER(counters_of().failed, 1);
	CHECK(!jit_files_is_coming(files, &key, monotonic_ns(), false));
	pass(60000);
	CHECK_NUMBER(asked, 2);
	on_answer(on_answer_context, question.number, NULL); /* unasked, and of nobody */
	on_answer(on_answer_context, 12345, NULL);
	CHECK_NUMBER(counters_of().failed, 1);
	pass(600000);
	CHECK_NUMBER(asked, 3);
	answer_all();
	CHECK_TEXT(name_at(0x1000), "one");
	end();
}

/* Gigabytes of anything: so many pieces a second, and none any more when there is no code in it. */
static void test_bounds(void)
{
	enum { LINES = 200000 };
	FILE *file;

	begin();
	file = fopen(path, "w");
	for (uint32_t i = 0; i < LINES; i++)
		fprintf(file, "%x 20 a_name_of_some_length_%u\n", 0x10000 + i * 32, i);
	fclose(file);
	pass(0);
	answer_all();
	CHECK(asked <= 64);
	for (int i = 0; i < 20; i++) {
		pass(1000);
		answer_all();
	}
	CHECK(counters_of().entries > 30000 && counters_of().entries < LINES);
	CHECK(counters_of().bytes <= (8 << 20) + (32 << 10));
	CHECK(counters_of().refused > 0);
	CHECK_TEXT(name_at(0x10000), "a_name_of_some_length_0");
	end();
}

static void test_nothing_in_it(void)
{
	begin();
	write_map("w", "1000 10 one\n");
	CHECK(!truncate(path, (off_t)3 << 30));
	for (int i = 0; i < 20; i++) {
		pass(1000);
		answer_all();
	}
	CHECK(asked < 30);
	CHECK_NUMBER(counters_of().failed, 1);
	CHECK_TEXT(name_at(0x1000), "one");
	end();
}

/* Reading what a process has mapped is dear: soon after its beginning, and then every so often, by
 * a child that is asked for it. */
static void test_maps(void)
{
	struct stranger_reader_counters before, after;

	begin();
	write_map("w", "1000 10 one\n");
	for (int i = 0; i < 8; i++) { /* a whole number of rounds */
		pass(1000);
		answer_all();
	}
	stranger_reader_counters(&before);
	for (int i = 0; i < 32; i++)
		pass(1000);
	stranger_reader_counters(&after);
	CHECK_TEXT(name_at(0x1000), "one");
	CHECK(after.asked > before.asked && after.asked - before.asked <= 32 * 3);
	end();
}

int main(void)
{
	key = (struct process_key){.tgid = (uint32_t)getpid(), .exec_id = 1};
	snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
	test_growth();
	test_coming();
	test_begun_anew();
	test_not_believed();
	test_given_up();
	test_bounds();
	test_nothing_in_it();
	test_maps();
	return checks_done();
}

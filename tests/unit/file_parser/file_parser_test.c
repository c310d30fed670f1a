/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/file_parser.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "node-agent/file_parser/parser_messages.h"
#include "node-agent/file_parser/unwind_file.h"
#include "tests/check.h"

enum { PATIENCE_MS = 20000, REAL = 1, FAKE = 1000 };

/* --- a child that is not sound: what it does is the number of the executable --- */

enum {
	SAYS_EMPTY = FAKE,
	SAYS_LOADED,
	DESCENDS,
	STARTS_LATE,
	RULE_TOO_HIGH,
	CFA_UNKNOWN,
	FP_UNKNOWN,
	RA_UNKNOWN,
	REGISTER_UNKNOWN,
	RA_REGISTER_UNKNOWN,
	FLAGS_UNKNOWN,
	NO_ROWS,
	NO_RULES,
	TOO_MANY_ROWS,
	TOO_MANY_RULES,
	STATE_UNKNOWN,
	STATE_ABSENT,
	FAILURE_UNKNOWN,
	FAILED_FOR_NOTHING,
	ROWS_ALTHOUGH_EMPTY,
	OTHER_PAGE,
	OTHER_EXECUTABLE,
	MESSAGE_SHORT,
	MESSAGE_CUT,
	MESSAGE_LONG,
	MESSAGE_EMPTY,
	FAREWELL_LONG,
	CRASHES,
	CLOSES,
	HOSTILE_END,
	HANGS = HOSTILE_END,
	SAYS_IT_TWICE,
	SAYS_FAREWELL,
	ANSWERS_AND_SAYS_FAREWELL,
	SAYS_DEAR,
};

static struct {
	struct row_answer answer;
	struct unwind_row rows[UNWIND_PAGE_ROWS_MAX + 1];
	struct unwind_rule rules[PAGE_RULES_MAX + 1];
} fake;
static uint8_t fake_bytes[sizeof fake];

static size_t lay_out(void)
{
	size_t rows = fake.answer.count * sizeof *fake.rows,
	       rules = fake.answer.rule_count * sizeof *fake.rules;

	memcpy(fake_bytes, &fake.answer, sizeof fake.answer);
	memcpy(fake_bytes + sizeof fake.answer, fake.rows, rows);
	memcpy(fake_bytes + sizeof fake.answer + rows, fake.rules, rules);
	return sizeof fake.answer + rows + rules;
}

/* Sound but for one thing. */
static void spoil(uint32_t how)
{
	switch (how) {
	case DESCENDS:
		fake.rows[2].low = fake.rows[1].low;
		break;
	case STARTS_LATE:
		fake.rows[0].low = 1;
		break;
	case RULE_TOO_HIGH:
		fake.rows[2].rule = 2;
		break;
	case CFA_UNKNOWN:
		fake.rules[1].cfa = UNWIND_CFA_COUNT;
		break;
	case FP_UNKNOWN:
		fake.rules[1].fp = UNWIND_FP_COUNT;
		break;
	case RA_UNKNOWN:
		fake.rules[1].ra = UNWIND_RA_COUNT;
		break;
	case REGISTER_UNKNOWN:
		fake.rules[1].cfa_register = UNWIND_REGISTERS;
		break;
	case RA_REGISTER_UNKNOWN:
		fake.rules[1].ra = UNWIND_RA_IN_REGISTER;
		fake.rules[1].ra_offset = UNWIND_REGISTERS;
		break;
	case FLAGS_UNKNOWN:
		fake.rules[1].flags = 0x80;
		break;
	case NO_ROWS:
		fake.answer.count = 0;
		break;
	case NO_RULES:
		fake.answer.rule_count = 0;
		break;
	case TOO_MANY_ROWS:
		fake.answer.count = UNWIND_PAGE_ROWS_MAX + 1;
		break;
	case TOO_MANY_RULES:
		fake.answer.rule_count = PAGE_RULES_MAX + 1;
		break;
	case STATE_UNKNOWN:
		fake.answer.state = UNWIND_PAGE_FAILED + 1;
		break;
	case STATE_ABSENT:
		fake.answer.state = UNWIND_PAGE_ABSENT;
		break;
	case FAILURE_UNKNOWN:
	case FAILED_FOR_NOTHING:
		fake.answer.state = UNWIND_PAGE_FAILED;
		fake.answer.failure = how == FAILURE_UNKNOWN ? ROW_FAILURE_COUNT : 0;
		fake.answer.count = fake.answer.rule_count = 0;
		break;
	case ROWS_ALTHOUGH_EMPTY:
		fake.answer.state = UNWIND_PAGE_EMPTY;
		break;
	case OTHER_PAGE:
		fake.answer.page++;
		break;
	case OTHER_EXECUTABLE:
		fake.answer.executable++;
		break;
	case FAREWELL_LONG:
		fake.answer.kind = PARSER_MESSAGE_FAREWELL;
		fake.answer.count = ROW_FAREWELL_MAX;
		fake.answer.rule_count = 0;
		break;
	default:
		break;
	}
}

static void fake_answer(const struct row_question *question)
{
	uint32_t how = question->executable;
	size_t length;

	memset(&fake, 0, sizeof fake);
	fake.answer = (struct row_answer){.executable = question->executable,
					  .page = question->page,
					  .state = UNWIND_PAGE_LOADED,
					  .count = 3,
					  .rule_count = 2};
	for (uint16_t i = 0; i < 3; i++)
		fake.rows[i] = (struct unwind_row){(uint16_t)(i * 8), i % 2};
	if (how < FAKE || how == SAYS_EMPTY) {
		fake.answer.state = UNWIND_PAGE_EMPTY;
		fake.answer.count = fake.answer.rule_count = 0;
	}
	spoil(how);
	fake.answer.cpu_ms = how == SAYS_DEAR ? 11000 : 0;
	length = lay_out();
	if (how == MESSAGE_SHORT)
		length = sizeof fake.answer - 1;
	if (how == MESSAGE_CUT)
		length--;
	if (how == MESSAGE_LONG)
		length++;
	if (how == MESSAGE_EMPTY)
		length = 0;
	send(FILE_PARSER_SOCKET, fake_bytes, length, 0);
	if (how == SAYS_IT_TWICE)
		send(FILE_PARSER_SOCKET, fake_bytes, length, 0);
}

/* --- the same about files --- */

enum {
	FILE_SOUND = FAKE,
	FILE_RAW,
	FILE_GONE,
	FILE_OTHER_NUMBER,
	FILE_STATE_UNKNOWN,
	FILE_PAGE,
	FILE_SEGMENTS_MANY,
	FILE_SEGMENTS_RAW,
	FILE_SEGMENTS_CUT,
	FILE_SEGMENT_WRAPS,
	FILE_SEGMENT_ADDRESS_WRAPS,
	FILE_SEGMENT_FLAGS,
	FILE_ID_LONG,
	FILE_ID_SHORT,
	FILE_GO_ID_ENDLESS,
	FILE_IS_ROWS,
	FILE_CRASHES,
	FILE_HANGS,
};

static struct {
	struct row_answer answer;
	struct row_file file;
	struct row_segment segments[ELF_IMAGE_SEGMENTS + 1];
} fake_file;

static void spoil_file(uint32_t how)
{
	struct row_answer *answer = &fake_file.answer;
	struct row_segment *segment = &fake_file.segments[1];

	answer->executable += how == FILE_OTHER_NUMBER;
	answer->page = how == FILE_PAGE;
	if (how == FILE_STATE_UNKNOWN)
		answer->state = ROW_FILE_STATES;
	if (how == FILE_GONE)
		answer->state = ROW_FILE_UNREADABLE;
	if (how == FILE_RAW || how == FILE_SEGMENTS_RAW)
		answer->state = ROW_FILE_RAW;
	if (how == FILE_RAW || how == FILE_GONE)
		answer->count = 0;
	if (how == FILE_SEGMENTS_MANY)
		answer->count = ELF_IMAGE_SEGMENTS + 1;
	if (how == FILE_SEGMENT_WRAPS)
		segment->file_size = UINT64_MAX - 0xfff;
	if (how == FILE_SEGMENT_ADDRESS_WRAPS)
		segment->memory_size = UINT64_MAX - 0x1fff;
	if (how == FILE_SEGMENT_FLAGS)
		segment->is_executable = 2;
	if (how == FILE_ID_LONG)
		fake_file.file.gnu_length = BUILD_ID_MAX + 1;
	if (how == FILE_ID_SHORT)
		fake_file.file.gnu_length = 1;
	if (how == FILE_GO_ID_ENDLESS)
		memset(fake_file.file.go_id, 'x', sizeof fake_file.file.go_id);
	if (how == FILE_IS_ROWS)
		answer->kind = PARSER_MESSAGE_PAGE;
}

static void fake_file_answer(const struct row_question *question)
{
	uint32_t how = question->executable;
	size_t length;

	memset(&fake_file, 0, sizeof fake_file);
	fake_file.answer = (struct row_answer){
		.kind = PARSER_MESSAGE_FILE, .executable = how, .state = ROW_FILE_ELF, .count = 2};
	fake_file.file.gnu_length = 20;
	for (uint64_t i = 0; i < 2; i++)
		fake_file.segments[i] = (struct row_segment){i * 0x1000, 0x1000, i * 0x2000, 0x1000,
							     i};
	spoil_file(how);
	length = sizeof fake_file.answer + sizeof fake_file.file +
		 fake_file.answer.count * sizeof *fake_file.segments;
	if (how == FILE_GONE)
		length = sizeof fake_file.answer;
	send(FILE_PARSER_SOCKET, &fake_file, length - (how == FILE_SEGMENTS_CUT), 0);
}

static void fake_file_question(const struct row_question *question)
{
	if (question->executable == FILE_CRASHES)
		abort();
	if (question->executable == FILE_HANGS)
		pause();
	fake_file_answer(question);
}

static void fake_child(void)
{
	struct row_question question;
	int fd;

	while (row_question_receive(FILE_PARSER_SOCKET, &question, &fd)) {
		close(fd);
		if (question.kind == PARSER_MESSAGE_FILE) {
			fake_file_question(&question);
			continue;
		}
		switch (question.executable) {
		case CRASHES:
			abort();
		case CLOSES:
			close(FILE_PARSER_SOCKET);
			pause();
			break;
		case HANGS:
			pause();
			break;
		case SAYS_FAREWELL:
			row_farewell_send(FILE_PARSER_SOCKET, "no \"sandbox\"\n here");
			_exit(1);
		case ANSWERS_AND_SAYS_FAREWELL:
			fake_answer(&question);
			row_farewell_send(FILE_PARSER_SOCKET, "");
			_exit(0);
		default:
			fake_answer(&question);
		}
	}
	_exit(0);
}

/* The first question says which child this is. */
static bool is_fake(void)
{
	struct row_question question;

	return recv(FILE_PARSER_SOCKET, &question, sizeof question, MSG_PEEK) == sizeof question &&
	       question.executable >= FAKE;
}

/* --- asking --- */

static int own_file = -1;

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* NULL: nothing came for a long time. */
static const struct page_rows *wait_answer(struct file_parser *parser)
{
	int64_t end = now_ms() + PATIENCE_MS;
	const struct page_rows *rows;

	while (!(rows = file_parser_next(parser, now_ms())) && now_ms() < end) {
		struct pollfd wait = {.fd = file_parser_fd(parser), .events = POLLIN};

		poll(&wait, 1, 20);
	}
	return rows;
}

static bool ask(struct file_parser *parser, uint32_t executable, uint32_t page)
{
	return file_parser_ask(parser, executable, own_file, page, now_ms());
}

static bool is_failure(const struct page_rows *rows, uint32_t executable, uint32_t page,
		       enum row_failure failure)
{
	return rows && rows->executable == executable && rows->page == page &&
	       rows->state == UNWIND_PAGE_FAILED && rows->failure == failure;
}

static bool is_answer(const struct page_rows *rows, uint32_t executable, uint32_t page,
		      enum unwind_page_state state)
{
	return rows && rows->executable == executable && rows->page == page && rows->state == state;
}

static struct file_parser_counters counters_of(const struct file_parser *parser)
{
	struct file_parser_counters counters;

	file_parser_counters(parser, &counters);
	return counters;
}

static pid_t child_of(void)
{
	char path[64], text[64] = "";
	FILE *file;

	snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
	file = fopen(path, "r");
	text[file ? fread(text, 1, sizeof text - 1, file) : 0] = '\0';
	if (file)
		fclose(file);
	return (pid_t)strtol(text, NULL, 10);
}

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
	CHECK(!file_parser_next(parser, now_ms()));
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

	CHECK(file_parser_ask(parser, 1, fd, 0, now_ms()));
	CHECK(is_failure(wait_answer(parser), 1, 0, ROW_FAILURE_NOT_CODE));
	close(fd);
	CHECK(pipe(pipes) == 0 && file_parser_ask(parser, 2, pipes[0], 0, now_ms()));
	CHECK(is_failure(wait_answer(parser), 2, 0, ROW_FAILURE_NOT_CODE));
	close(pipes[0]);
	close(pipes[1]);
	CHECK(!file_parser_ask(parser, 3, -1, 0, now_ms()));
	CHECK(!file_parser_ask(parser, 0, own_file, 0, now_ms()));
	for (uint32_t i = 0; i < FILES && length > 4096; i++) {
		const struct page_rows *rows;

		for (int j = 0; j < 2000; j++) {
			random = random * 1664525 + 1013904223;
			bytes[64 + (random >> 8) % ((uint32_t)length - 64)] = (uint8_t)random;
		}
		fd = file_of(bytes, (size_t)length / (i % 4 + 1));
		CHECK(file_parser_ask(parser, 10 + i, fd, here, now_ms()));
		close(fd); /* the parser has its own */
		rows = wait_answer(parser);
		answered += rows && rows->executable == 10 + i && rows->page == here;
	}
	CHECK_NUMBER(answered, FILES);
	free(bytes);
	file_parser_free(parser);
}

/* Whatever a child says: that page fails, the next is answered. */
static void test_hostile(void)
{
	for (uint32_t how = DESCENDS; how < HOSTILE_END; how++) {
		struct file_parser *parser = file_parser_new(NULL);
		struct file_parser_counters counters;

		CHECK(ask(parser, how, 7) && ask(parser, SAYS_LOADED, 8) && ask(parser, REAL, 9));
		if (!CHECK(is_failure(wait_answer(parser), how, 7, ROW_FAILURE_WORKER)))
			printf("# the child that does %u\n", how - FAKE);
		CHECK(is_answer(wait_answer(parser), SAYS_LOADED, 8, UNWIND_PAGE_LOADED));
		CHECK(is_answer(wait_answer(parser), REAL, 9, UNWIND_PAGE_EMPTY));
		counters = counters_of(parser);
		CHECK_NUMBER(counters.started, 2);
		CHECK_NUMBER(counters.killed + counters.died, 1);
		CHECK_NUMBER(counters.waiting, 0);
		file_parser_free(parser);
	}
}

static void test_hang(void)
{
	struct file_parser *parser = file_parser_new(NULL);
	struct file_parser_counters counters;
	int64_t start = now_ms(), took;

	CHECK(ask(parser, HANGS, 1) && ask(parser, SAYS_EMPTY, 2));
	CHECK(is_failure(wait_answer(parser), HANGS, 1, ROW_FAILURE_WORKER));
	took = now_ms() - start;
	CHECK(took >= 1900 && took < 4000);
	CHECK(is_answer(wait_answer(parser), SAYS_EMPTY, 2, UNWIND_PAGE_EMPTY));
	counters = counters_of(parser);
	CHECK_NUMBER(counters.killed, 1);
	CHECK_NUMBER(counters.died, 0);
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
	CHECK(!file_parser_next(parser, now_ms() + 1000));
	CHECK(is_failure(file_parser_next(parser, now_ms() + 2100), REAL, 1, ROW_FAILURE_WORKER));
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

/* Nothing was wrong, so no page fails: the next child goes on. */
static void test_farewell(void)
{
	struct file_parser *parser = file_parser_new(NULL);

	for (uint32_t page = 0; page < 6; page++)
		CHECK(ask(parser, ANSWERS_AND_SAYS_FAREWELL, page));
	for (uint32_t page = 0; page < 6; page++)
		CHECK(is_answer(wait_answer(parser), ANSWERS_AND_SAYS_FAREWELL, page,
				UNWIND_PAGE_LOADED));
	CHECK_NUMBER(counters_of(parser).died + counters_of(parser).killed, 0);
	CHECK(counters_of(parser).started >= 6);
	file_parser_free(parser);
}

/* No child can work: what waits fails, nobody asks for a while, later they may. */
static void test_useless(void)
{
	struct file_parser *parser = file_parser_new(NULL);

	CHECK(ask(parser, SAYS_FAREWELL, 1) && ask(parser, SAYS_EMPTY, 2));
	CHECK(is_failure(wait_answer(parser), SAYS_FAREWELL, 1, ROW_FAILURE_WORKER));
	CHECK(is_failure(wait_answer(parser), SAYS_EMPTY, 2, ROW_FAILURE_WORKER));
	CHECK_NUMBER(counters_of(parser).started, 8);
	CHECK(!ask(parser, SAYS_EMPTY, 3));
	CHECK(file_parser_ask(parser, SAYS_EMPTY, own_file, 3, now_ms() + 11000));
	file_parser_free(parser);
}

/* --- what files are --- */

static struct {
	unsigned count, failed, hung;
	uint32_t number; /* the last one's */
	struct file_content content;
} told;

static void take_told(void *context, uint32_t number, const struct file_content *content,
		      bool is_hung)
{
	(void)context;
	told.count++;
	told.failed += !content;
	told.hung += is_hung;
	told.number = number;
	if (content)
		told.content = *content;
}

static struct file_parser *new_file_worker(void)
{
	struct file_parser *parser = file_parser_new(NULL);

	memset(&told, 0, sizeof told);
	file_parser_set_file(parser, take_told, NULL);
	return parser;
}

static bool ask_file(struct file_parser *parser, uint32_t number, int fd)
{
	return file_parser_ask_file(parser, number, fd, now_ms());
}

static bool wait_told(struct file_parser *parser, unsigned count)
{
	int64_t end = now_ms() + PATIENCE_MS;

	while (told.count < count && now_ms() < end) {
		struct pollfd wait = {.fd = file_parser_fd(parser), .events = POLLIN};

		CHECK(!file_parser_next(parser, now_ms()));
		if (told.count < count)
			poll(&wait, 1, 20);
	}
	return told.count == count;
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

/* What is wrong is told as a failure, and the next one and pages are answered. */
static void test_hostile_files(void)
{
	for (uint32_t how = FILE_OTHER_NUMBER; how < FILE_HANGS; how++) {
		struct file_parser *parser = new_file_worker();

		CHECK(ask_file(parser, how, own_file) && ask_file(parser, FILE_SOUND, own_file) &&
		      ask(parser, SAYS_LOADED, 8) && ask_file(parser, FILE_RAW, own_file) &&
		      ask_file(parser, FILE_GONE, own_file));
		if (!CHECK(is_answer(wait_answer(parser), SAYS_LOADED, 8, UNWIND_PAGE_LOADED)))
			printf("# the child that does %u to files\n", how - FAKE);
		CHECK_NUMBER(told.failed, 1);
		CHECK(told.number == FILE_SOUND && told.content.is_elf &&
		      told.content.image.segment_count == 2 && told.content.image.gnu.length == 20);
		CHECK(wait_told(parser, 4) && told.failed == 2 && !told.content.is_elf);
		CHECK_NUMBER(told.hung, 0);
		CHECK_NUMBER(counters_of(parser).started, 2);
		file_parser_free(parser);
	}
}

/* A file whose bytes do not come costs the others its deadline once. */
static void test_hung_file(void)
{
	struct file_parser *parser = new_file_worker();
	int64_t start = now_ms(), took;

	CHECK(ask_file(parser, FILE_HANGS, own_file) && ask(parser, SAYS_LOADED, 1));
	CHECK(is_answer(wait_answer(parser), SAYS_LOADED, 1, UNWIND_PAGE_LOADED));
	took = now_ms() - start;
	CHECK(took >= 450 && took < 4000);
	CHECK(told.number == FILE_HANGS && told.failed == 1 && told.hung == 1);
	CHECK_NUMBER(counters_of(parser).killed, 1);
	file_parser_free(parser);
}

/* A file that kills three children is not tried any more; others are. */
static void test_suspect(void)
{
	struct file_parser *parser = file_parser_new(NULL);

	for (uint32_t page = 0; page < 10; page++)
		CHECK(ask(parser, CRASHES, page) && ask(parser, SAYS_EMPTY, page));
	for (uint32_t page = 0; page < 10; page++) {
		CHECK(is_failure(wait_answer(parser), CRASHES, page, ROW_FAILURE_WORKER));
		CHECK(is_answer(wait_answer(parser), SAYS_EMPTY, page, UNWIND_PAGE_EMPTY));
	}
	CHECK_NUMBER(counters_of(parser).died, 3);
	file_parser_free(parser);
}

/* A file that has used all its time is not tried any more, and then there is none for new files;
 * those that answered before go on. */
static void test_dear(void)
{
	struct file_parser *parser = file_parser_new(NULL);

	CHECK(ask(parser, SAYS_EMPTY, 1));
	CHECK(is_answer(wait_answer(parser), SAYS_EMPTY, 1, UNWIND_PAGE_EMPTY));
	CHECK(ask(parser, SAYS_DEAR, 1));
	CHECK(is_answer(wait_answer(parser), SAYS_DEAR, 1, UNWIND_PAGE_LOADED));
	CHECK(ask(parser, SAYS_DEAR, 2) && ask(parser, SAYS_EMPTY, 2));
	CHECK(is_failure(wait_answer(parser), SAYS_DEAR, 2, ROW_FAILURE_WORKER));
	CHECK(is_answer(wait_answer(parser), SAYS_EMPTY, 2, UNWIND_PAGE_EMPTY));
	CHECK(!ask(parser, SAYS_LOADED, 1));
	CHECK(file_parser_ask(parser, SAYS_LOADED, own_file, 1, now_ms() + 31000));
	file_parser_free(parser);
}

/* Asked for while there was time: passed by others, and answered when there is some again. */
static void test_passed(void)
{
	struct file_parser *parser = file_parser_new(NULL);
	int64_t later = now_ms() + 31000;
	const struct page_rows *rows = NULL;

	CHECK(ask(parser, SAYS_EMPTY, 1));
	CHECK(is_answer(wait_answer(parser), SAYS_EMPTY, 1, UNWIND_PAGE_EMPTY));
	kill(child_of(), SIGSTOP);
	CHECK(ask(parser, SAYS_DEAR, 1));
	for (uint32_t page = 2; page <= 4; page++)
		CHECK(ask(parser, SAYS_EMPTY, page));
	CHECK(ask(parser, SAYS_LOADED, 1) && ask(parser, SAYS_EMPTY, 5)); /* not sent yet */
	kill(child_of(), SIGCONT);
	CHECK(is_answer(wait_answer(parser), SAYS_DEAR, 1, UNWIND_PAGE_LOADED));
	for (uint32_t page = 2; page <= 5; page++)
		CHECK(is_answer(wait_answer(parser), SAYS_EMPTY, page, UNWIND_PAGE_EMPTY));
	CHECK(!file_parser_next(parser, now_ms()));
	CHECK_NUMBER(counters_of(parser).waiting, 1);
	for (int i = 0; i < 200 && !rows; i++, usleep(10000))
		rows = file_parser_next(parser, later);
	CHECK(is_answer(rows, SAYS_LOADED, 1, UNWIND_PAGE_LOADED));
	file_parser_free(parser);
}

static void test_unasked(void)
{
	struct file_parser *parser = file_parser_new(NULL);
	int unasked = 0;

	CHECK(ask(parser, SAYS_IT_TWICE, 1));
	CHECK(is_answer(wait_answer(parser), SAYS_IT_TWICE, 1, UNWIND_PAGE_LOADED));
	for (int i = 0; i < 100 && !counters_of(parser).killed; i++, usleep(10000))
		unasked += file_parser_next(parser, now_ms()) != NULL;
	CHECK_NUMBER(unasked, 0);
	CHECK_NUMBER(counters_of(parser).killed, 1);
	CHECK_NUMBER(file_parser_fd(parser), -1);
	CHECK(ask(parser, SAYS_EMPTY, 2));
	CHECK(is_answer(wait_answer(parser), SAYS_EMPTY, 2, UNWIND_PAGE_EMPTY));
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
	int status;

	if (argc == 1 && !strcmp(argv[0], FILE_PARSER_NAME) && is_fake())
		fake_child();
	status = file_parser_main(argc, argv);
	if (status >= 0)
		return status;
	log_set_level(LOG_ERROR);
	own_file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	test_real_pages();
	test_garbage();
	test_hostile();
	test_hang();
	test_stopped_and_killed();
	test_farewell();
	test_useless();
	test_files();
	test_hostile_files();
	test_hung_file();
	test_suspect();
	test_dear();
	test_passed();
	test_unasked();
	test_many();
	test_child_from_outside();
	close(own_file);
	return checks_done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever the parser's child does, one file's answer is lost by it, and the next is answered. */
#include <signal.h>
#include <sys/socket.h>

#include "common/log.h"
#include "tests/unit/file_parser/asking.h"

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

/* --- tests --- */

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
	int64_t start = monotonic_ms(), took;

	CHECK(ask(parser, HANGS, 1) && ask(parser, SAYS_EMPTY, 2));
	CHECK(is_failure(wait_answer(parser), HANGS, 1, ROW_FAILURE_WORKER));
	took = monotonic_ms() - start;
	CHECK(took >= 1900 && took < 4000);
	CHECK(is_answer(wait_answer(parser), SAYS_EMPTY, 2, UNWIND_PAGE_EMPTY));
	counters = counters_of(parser);
	CHECK_NUMBER(counters.killed, 1);
	CHECK_NUMBER(counters.died, 0);
	file_parser_free(parser);
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
	CHECK(file_parser_ask(parser, SAYS_EMPTY, own_file, 3, monotonic_ms() + 11000));
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
	int64_t start = monotonic_ms(), took;

	CHECK(ask_file(parser, FILE_HANGS, own_file) && ask(parser, SAYS_LOADED, 1));
	CHECK(is_answer(wait_answer(parser), SAYS_LOADED, 1, UNWIND_PAGE_LOADED));
	took = monotonic_ms() - start;
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
	CHECK(file_parser_ask(parser, SAYS_LOADED, own_file, 1, monotonic_ms() + 31000));
	file_parser_free(parser);
}

/* Asked for while there was time: passed by others, and answered when there is some again. */
static void test_passed(void)
{
	struct file_parser *parser = file_parser_new(NULL);
	int64_t later = monotonic_ms() + 31000;
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
	CHECK(!file_parser_next(parser, monotonic_ms()));
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
		unasked += file_parser_next(parser, monotonic_ms()) != NULL;
	CHECK_NUMBER(unasked, 0);
	CHECK_NUMBER(counters_of(parser).killed, 1);
	CHECK_NUMBER(file_parser_fd(parser), -1);
	CHECK(ask(parser, SAYS_EMPTY, 2));
	CHECK(is_answer(wait_answer(parser), SAYS_EMPTY, 2, UNWIND_PAGE_EMPTY));
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
	test_hostile();
	test_hang();
	test_farewell();
	test_useless();
	test_hostile_files();
	test_hung_file();
	test_suspect();
	test_dear();
	test_passed();
	test_unasked();
	close(own_file);
	return checks_done();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "common/options.h"

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/check.h"

/* Texts of options are kept for the life of the process, and here many lives are played. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

struct values {
	bool fast;
	uint32_t rate, mode;
	const char *name;
	struct option_list labels;
	int64_t interval_ms;
	uint64_t room;
};

static const struct option_row rows[] = {
	{ "fast", 'f', OPTION_FLAG, offsetof(struct values, fast), .help = "be fast" },
	{ "rate", 'r', OPTION_UINT, offsetof(struct values, rate), 1, 1000, "19", "HZ", "rate" },
	{ "mode", 0, OPTION_CHOICE, offsetof(struct values, mode), 0, 0, "auto", "auto|bpf|perf", "mode" },
	{ "name", 0, OPTION_TEXT, offsetof(struct values, name), .argument = "TEXT", .help = "name" },
	{ "label", 0, OPTION_LIST, offsetof(struct values, labels), .argument = "K=V", .help = "label" },
	{ "interval", 0, OPTION_DURATION, offsetof(struct values, interval_ms), 1000, 600000, "10s",
	  "TIME", "from 1s to 10m" },
	{ "room", 0, OPTION_SIZE, offsetof(struct values, room), 0, 0, "2M", "SIZE", "room" },
	{ "later", 0, OPTION_LATER, 0, .help = "comes with the next version" },
	{ .name = NULL },
};
static const struct option_program program = { "prog", "does it", "1.2", rows };

static enum options_action read_line(struct values *values, struct error *err, const char *line)
{
	char *copy = strdup(line), *argv[20] = { (char *)"prog" };
	int argc = 1;

	for (char *word = strtok(copy, " "); word && argc < 20; word = strtok(NULL, " "))
		argv[argc++] = word;
	memset(values, 0, sizeof *values);
	return options_read(&program, argc, argv, values, err); /* copy stays: values borrow from it */
}

static void refuse(const char *line, const char *sentence)
{
	struct values values;
	struct error err = { 0 };

	CHECK(read_line(&values, &err, line) == OPTIONS_FAILED);
	if (!strstr(err.message, sentence))
		printf("# '%s' says: %s\n", line, err.message);
	CHECK(strstr(err.message, sentence) != NULL);
}

static void test_file(void)
{
	char path[] = "/tmp/farflame-options-XXXXXX", line[200];
	static const char text[] = "# a comment\nrate = 50\n\n interval=2m\nlabel = a=b\nfast = true\n";
	int fd = mkstemp(path);
	struct values values;
	struct error err = { 0 };

	CHECK(write(fd, text, sizeof text - 1) == (ssize_t)sizeof text - 1);
	close(fd);
	snprintf(line, sizeof line, "--rate=60 --config %s --label c=d", path);
	CHECK(read_line(&values, &err, line) == OPTIONS_RUN);
	CHECK_NUMBER(values.rate, 60); /* the command line wins, wherever it stands */
	CHECK_NUMBER(values.interval_ms, 120000);
	CHECK(values.fast);
	CHECK_NUMBER(values.labels.count, 2);
	unlink(path);
}

/* What --print-config writes is a file that gives the same values. */
static void test_print(void)
{
	char path[] = "/tmp/farflame-options-XXXXXX", line[200];
	struct values values, again;
	struct error err = { 0 };
	FILE *file = fdopen(mkstemp(path), "w");

	CHECK(read_line(&values, &err, "-f --rate 7 --mode perf --interval 90s --room 3G --label x=y") ==
	      OPTIONS_RUN);
	options_print_config(&program, &values, file);
	fclose(file);
	snprintf(line, sizeof line, "--config %s", path);
	CHECK(read_line(&again, &err, line) == OPTIONS_RUN);
	CHECK(again.fast && again.rate == 7 && again.mode == 2 && again.interval_ms == 90000);
	CHECK(again.room == 3ull << 30 && again.labels.count == 1 && !again.name);
	unlink(path);
}

int main(void)
{
	struct values values;
	struct error err = { 0 };

	CHECK(read_line(&values, &err, "") == OPTIONS_RUN);
	CHECK(values.rate == 19 && values.interval_ms == 10000 && values.room == 2 << 20);
	CHECK(read_line(&values, &err, "-r 20 --fast --name x") == OPTIONS_RUN);
	CHECK(values.rate == 20 && values.fast);
	CHECK_TEXT(values.name, "x");
	refuse("--rate 0", "from 1 to 1000");
	refuse("--rate 1001", "from 1 to 1000");
	refuse("--rate 7x", "not '7x'");
	refuse("--rate", "needs a value");
	refuse("--interval 10", "needs a unit");
	refuse("--interval 11m", "from 1s to 10m");
	refuse("--interval 99999999999999d", "too long");
	refuse("--room 5X", "not a size");
	refuse("--mode none", "auto|bpf|perf");
	refuse("--later", "--later: comes with the next version");
	refuse("--nothing", "no option '--nothing'");
	refuse("word", "not an option");
	refuse("--fast=maybe", "true or false");
	refuse("--config /nonexistent", "No such file");
	test_file();
	test_print();
	return checks_done();
}

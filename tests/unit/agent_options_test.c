/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/check.h"

#include <stdlib.h>
#include <unistd.h>

#include "node-agent/agent_options.h"
#include "node-agent/capture/capture.h"
#include "node-agent/stacks/samples.h"

enum { ARGUMENTS_MAX = 20 };

static struct agent_options options;
static char program[] = "farflame-agent";

/* Options live as long as their process; here they are read again and again. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static enum options_action read_line(const char *line, struct error *err)
{
	char *arguments[ARGUMENTS_MAX + 2] = {program};
	int count = 1;

	options = (struct agent_options){0};
	*err = (struct error){0};
	/* the options borrow the words: a fresh place for every line */
	for (char *word = strtok(strdup(line), " "); word; word = strtok(NULL, " "))
		arguments[count++] = word;
	return agent_options_read(count, arguments, &options, err);
}

static const struct {
	const char *line, *sentence; /* a part of it */
} refused[] = {
	{"", "--server URL, or --output FILE"},
	{"--server http://h --output f", "exclude each other"},
	{"--server h:7878", "does not start with http://"},
	{"--server http://h --frequency 0", "--frequency"},
	{"--server http://h --frequency 1001", "--frequency"},
	{"--server http://h --report-interval 10", "needs a unit"},
	{"--server http://h --report-interval 500ms", "--report-interval"},
	{"--server http://h --report-interval 11m", "--report-interval"},
	{"--server http://h --max-frames 1025", "--max-frames"},
	{"--server http://h --capture magic", "--capture"},
	{"--server http://h --profile on-cpu,on-gpu",
	 "--profile: this version does not take on-gpu yet"},
	{"--server http://h --profile on-cpu,", "--profile takes on-cpu"},
	{"--server http://h --off-cpu-budget 1", "--off-cpu-budget takes a share"},
	{"--server http://h --off-cpu-budget 0%", "--off-cpu-budget takes a share"},
	{"--server http://h --off-cpu-budget nan%", "--off-cpu-budget takes a share"},
	{"--server http://h --mem-budget 0", "--mem-budget takes a share"},
	{"--server http://h --off-cpu-budget 101%", "--off-cpu-budget takes a share"},
	{"--server http://h --profile nonsense", "--profile takes on-cpu"},
	{"--output f --spool /x", "--spool"},
	{"--server http://h --spool=", "--spool"},
	{"--server http://h --spool-limit 1K", "--spool-limit"},
	{"--server http://h --spool-sync 5", "needs a unit"},
	{"--server http://h --debug-stop", "--debug-stop needs --pid"},
	{"--server http://h --pid 0", "--pid"},
	{"--server http://h --pid 1,", "--pid"},
	{"--server http://h --pid 1x", "--pid"},
	{"--server http://h --pid 99999999999999999999", "--pid"},
	{"--server http://h --label novalue", "--label"},
	{"--server http://h --label a=", "--label a needs a value"},
	{"--server http://h --label 1a=b", "--label"},
	{"--server http://h --label a$=b", "--label"},
	{"--server http://h --label host=b", "see --host"},
	{"--server http://h --label thread=b", "has this label already"},
	{"--server http://h --label k8s.pod.name=b", "has this label already"},
	{"--server http://h --label thread-id=b", "has this label already"},
	{"--server http://h --label attr-x=b", "has this label already"},
	{"--server http://h --label a=b --label a=c", "given twice"},
	{"--server http://h --upload always", "--upload"},
	{"--server http://h --upload-rate 1K", "--upload-rate"},
	{"--server http://h --queue-limit 20X", "--queue-limit"},
	{"--server", "needs a value"},
	{"--nonsense", "--nonsense"},
};

static void check_refused(void)
{
	struct error err;

	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		if (!CHECK(read_line(refused[i].line, &err) == OPTIONS_FAILED &&
			   strstr(err.message, refused[i].sentence)))
			printf("# %s\n# says: %s\n", refused[i].line, err.message);
}

static void check_values(void)
{
	struct error err;

	CHECK_NUMBER(read_line("--server http://h:7878", &err), OPTIONS_RUN);
	CHECK_NUMBER(options.frequency_hz, 19);
	CHECK_NUMBER(options.report_interval_ms, 10000);
	CHECK_NUMBER(options.duration_ms, 0);
	CHECK_NUMBER(options.max_frames, 1024);
	CHECK_NUMBER(options.upload_missing, true);
	CHECK(options.host && *options.host);
	CHECK(!options.service);
	CHECK(!options.spool);
	CHECK_NUMBER(options.spool_limit_bytes, 256 << 20);
	CHECK_NUMBER(options.spool_sync_ms, 30000);
	CHECK_NUMBER(read_line("-o f -F 99 -p 7 --pid=8,9 --upload never --host web1 -d 1m", &err),
		     OPTIONS_RUN);
	CHECK_NUMBER(options.frequency_hz, 99);
	CHECK_NUMBER(options.pid_count, 3);
	CHECK_NUMBER(options.pids[2], 9);
	CHECK_NUMBER(options.upload_missing, false);
	CHECK_NUMBER(options.duration_ms, 60000);
	CHECK_NUMBER(options.capture, CAPTURE_AUTO);
	CHECK_TEXT(options.host, "web1");
	CHECK_NUMBER(read_line("-o f -l a.b-c_=x=y -l service=shop", &err), OPTIONS_RUN);
	CHECK_NUMBER(options.label_count, 1);
	CHECK_TEXT(options.label_names[0], "a.b-c_");
	CHECK_TEXT(options.label_values[0], "x=y");
	CHECK_TEXT(options.service, "shop");
	CHECK_NUMBER(read_line("-o f --capture bpf", &err), OPTIONS_RUN);
	CHECK_NUMBER(options.capture, CAPTURE_BPF);
	CHECK_NUMBER(read_line("-o f --capture perf", &err), OPTIONS_RUN);
	CHECK_NUMBER(options.capture, CAPTURE_PERF);
	CHECK_NUMBER(read_line("--check", &err), OPTIONS_RUN);
	CHECK_NUMBER(options.types, 1 << SAMPLE_TYPE_on_cpu);
	CHECK(options.budgets[KERNEL_SOURCE_off_cpu] == 0.001);
	CHECK_NUMBER(read_line("-o f --profile off-cpu,waker --off-cpu-budget 2.5%", &err),
		     OPTIONS_RUN);
	CHECK_NUMBER(options.types, 1 << SAMPLE_TYPE_off_cpu | 1 << SAMPLE_TYPE_waker);
	CHECK(options.budgets[KERNEL_SOURCE_off_cpu] == 0.025);
}

static void check_label_count(void)
{
	static char output[] = "--output", file[] = "f", label[] = "--label";
	char *arguments[2 * LABELS_MAX + 8] = {program, output, file};
	static char texts[LABELS_MAX + 1][16];
	struct error err = {0};
	int count = 3;

	for (int i = 0; i <= LABELS_MAX; i++) {
		snprintf(texts[i], sizeof texts[i], "l%d=x", i);
		arguments[count++] = label;
		arguments[count++] = texts[i];
	}
	options = (struct agent_options){0};
	CHECK_NUMBER(agent_options_read(count - 2, arguments, &options, &err), OPTIONS_RUN);
	options = (struct agent_options){0};
	CHECK_NUMBER(agent_options_read(count, arguments, &options, &err), OPTIONS_FAILED);
}

/* Runs with stdout in a file and gives what was written. */
static char *output_of(const char *line)
{
	static char text[32768];
	FILE *file = tmpfile();
	struct error err;
	int saved = dup(1);
	size_t length;

	fflush(stdout);
	dup2(fileno(file), 1);
	read_line(line, &err);
	fflush(stdout);
	dup2(saved, 1);
	close(saved);
	rewind(file);
	length = fread(text, 1, sizeof text - 1, file);
	text[length] = '\0';
	fclose(file);
	return text;
}

/* What is printed as a file reads back as the same options. */
static void check_print_config(void)
{
	char path[] = "/tmp/farflame_options_XXXXXX", line[200], first[32768];
	int fd = mkstemp(path);

	strcpy(first, output_of("--server http://h -F 49 -l a=b -p 5 --print-config"));
	CHECK(strstr(first, "\nfrequency = 49\n"));
	CHECK(write(fd, first, strlen(first)) == (ssize_t)strlen(first));
	close(fd);
	snprintf(line, sizeof line, "--config %s --print-config", path);
	CHECK_TEXT(output_of(line), first);
	unlink(path);
}

/* The manual's options are the table's. */
static void check_manual(void)
{
	static char manual[65536];
	FILE *file = fopen("deploy/man/farflame-agent.8", "r");
	const char *section = output_of("--help-man");

	if (!file) {
		SKIP("not run from the repository's root");
		return;
	}
	manual[fread(manual, 1, sizeof manual - 1, file)] = '\0';
	fclose(file);
	CHECK(strstr(section, "-frequency"));
	CHECK(strstr(manual, section)); /* else: farflame-agent --help-man gives the new section */
}

int main(void)
{
	check_refused();
	check_values();
	check_label_count();
	check_print_config();
	check_manual();
	return checks_done();
}

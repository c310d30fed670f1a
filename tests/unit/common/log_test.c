/* SPDX-License-Identifier: Apache-2.0 */
/* What a fault that lasts makes of its lines, and what stderr as the journal gets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "tests/check.h"

/* Every five seconds for a day: first, then at doubling distances up to the hour. */
static void test_distances(void)
{
	struct log_fault fault = {0};
	int64_t at[64], now;
	unsigned lines = 0;

	for (now = 1000; now < 1000 + 86400000; now += 5000)
		if (log_fault_came(&fault, 2, now) && lines < 64)
			at[lines++] = now - 1000;
	CHECK(lines > 24 && lines < 40);
	CHECK_NUMBER(at[0], 0);
	CHECK_NUMBER(at[1], 5000);
	CHECK(at[4] - at[3] > at[3] - at[2] || at[4] - at[3] == 5000);
	CHECK_NUMBER(at[lines - 1] - at[lines - 2], 3600000);
	CHECK_NUMBER(fault.times, 17280);
	CHECK_NUMBER(fault.sum, 34560);
}

/* What was quiet for long is another fault. */
static void test_forgotten(void)
{
	struct log_fault fault = {0};

	CHECK(log_fault_came(&fault, 0, 5));
	CHECK(!log_fault_came(&fault, 0, 6));
	CHECK(log_fault_came(&fault, 0, 6 + LOG_FAULT_FORGOTTEN_MS + 1));
	CHECK_NUMBER(fault.times, 1);
}

/* What a process writes whose stderr is a pipe that is, or is not, the journal's. */
static void written(bool is_journal, char *text, size_t room)
{
	int ends[2];
	ssize_t length;
	pid_t child;

	CHECK(!pipe(ends));
	child = fork();
	if (!child) {
		struct log_fault fault = {0};
		struct stat st;
		char stream[60];

		dup2(ends[1], STDERR_FILENO);
		fstat(STDERR_FILENO, &st);
		snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)st.st_dev,
			 (unsigned long long)st.st_ino + !is_journal);
		setenv("JOURNAL_STREAM", stream, 1);
		log_warn("first", "a=%d", 1);
		log_fault_over(&fault, "fault");
		for (int i = 0; i < 3; i++)
			log_fault_write(&fault, 10, LOG_ERROR, "fault", "why=\"a\nb\"");
		log_fault_over(&fault, "fault");
		log_fault_over(&fault, "fault");
		_exit(0);
	}
	close(ends[1]);
	waitpid(child, NULL, 0);
	length = read(ends[0], text, room - 1);
	text[length > 0 ? length : 0] = '\0';
	close(ends[0]);
}

static void test_lines(void)
{
	char text[1000];

	written(false, text, sizeof text);
	CHECK_TEXT(text, "warn first a=1\nerror fault why=\"a?b\"\n"
			 "info fault is=over it_took_s=0 times=3 sum=30\n");
	written(true, text, sizeof text);
	CHECK_TEXT(text, "<4>warn first a=1\n<3>error fault why=\"a?b\"\n"
			 "<6>info fault is=over it_took_s=0 times=3 sum=30\n");
}

int main(void)
{
	test_distances();
	test_forgotten();
	test_lines();
	return checks_done();
}

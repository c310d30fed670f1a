/* SPDX-License-Identifier: Apache-2.0 */
/* A spool on a real directory, and a tally of what a server would be told: with every report that
 * arrives, taken = samples + lost of that run. */
#ifndef TESTS_UNIT_SHIP_SPOOL_TALLY_H
#define TESTS_UNIT_SHIP_SPOOL_TALLY_H

#include "tests/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "node-agent/ship/spool.h"
#include "node-agent/ship/spool_directory.h"

enum { RUNS = 64, BODY = 3000, SMALL = 1 << 20 };

static char top[64], directory[100];

/* --- files --- */

__attribute__((format(printf, 1, 2))) static void shell(const char *format, ...)
{
	char command[400];
	va_list parts;

	va_start(parts, format);
	vsnprintf(command, sizeof command, format, parts);
	va_end(parts);
	if (system(command) != 0)
		CHECK_TEXT(command, "done");
}

static void remove_directory(void)
{
	shell("rm -rf '%s'", directory);
}

/* --- a run of the agent, and what the server makes of it --- */

struct run {
	uint64_t taken, seq, live_refused;                     /* at the agent */
	uint64_t told_taken, samples, told_lost, told_refused; /* at the server */
	uint64_t last_seq;
	uint64_t promised; /* of taken: a loss of power does not change it any more */
};
static struct {
	volatile bool is_telling; /* the server is at it, which nobody kills */
	struct run runs[RUNS];
} * shared; /* with children */
static struct run *runs;
static unsigned run_number;
static uint8_t body[200000];

static void start_anew(void)
{
	memset(runs, 0, RUNS * sizeof *runs);
	run_number = 0;
	for (size_t i = 0; i < sizeof body; i++)
		body[i] = (uint8_t)(i * 7 + i / 256);
}

static void start_tally(void)
{
	log_set_level(LOG_ERROR);
	/* Where syncing costs nothing, if there is such a place. */
	snprintf(top, sizeof top, "%s/farflame-spool-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	CHECK(mkdtemp(top));
	snprintf(directory, sizeof directory, "%s/spool", top);
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(shared != MAP_FAILED);
	runs = shared->runs;
}

static struct spool *open_limited(uint64_t limit)
{
	struct spool_options options = {
		.directory = directory, .limit_bytes = limit, .sync_ms = 1000};
	struct error err = {0};
	struct spool *spool;

	options.run[0] = (uint8_t)++run_number;
	spool = spool_open(&options, &err);
	if (!CHECK(spool))
		printf("# %s\n", err.message);
	return spool;
}

static bool add_sized(struct spool *spool, uint64_t samples, size_t length)
{
	struct run *run = &runs[run_number];
	static const char *const names[] = {"zone"}, *const values[] = {"a=b, c"};
	const struct profile_counter counters[] = {{"taken", run->taken + samples},
						   {"lost.refused", run->live_refused}};
	struct spool_report report = {
		.samples = samples,
		.body = {body, length},
		.host = {.host = "tester",
			 .kernel_release = "6.1.0",
			 .architecture = "x86_64",
			 .agent_version = "0",
			 .agent_id = {(uint8_t)run_number},
			 .report_seq = run->seq + 1,
			 .start_ns = 1000 * (run->seq + 1),
			 .duration_ns = 1000,
			 .rate_hz = 19,
			 .label_names = names,
			 .label_values = values,
			 .label_count = 1,
			 .counters = report.counters,
			 .counter_count = 2},
	};

	memcpy(report.counters, counters, sizeof counters);
	if (!spool_add(spool, &report, 0, NULL))
		return false;
	run->taken += samples;
	run->seq++;
	return true;
}

__attribute__((unused)) static bool add(struct spool *spool, uint64_t samples)
{
	return add_sized(spool, samples, BODY);
}

static uint64_t counter_of(const struct spool_report *report, const char *name)
{
	for (size_t i = 0; i < report->host.counter_count; i++)
		if (!strcmp(report->counters[i].name, name))
			return report->counters[i].value;
	return 0;
}

static int quiet_failures;
static bool are_repeats_known; /* as the server knows them by their ids */

/* Not a line of TAP for each of thousands. */
static void expect(bool good, const char *what, uint64_t got, uint64_t want)
{
	if (!good && ++quiet_failures < 20)
		printf("# %s: got %" PRIu64 ", want %" PRIu64 "\n", what, got, want);
}

static void expect_facts(const struct spool_report *report)
{
	expect(!strcmp(report->host.host, "tester") &&
		       (report->is_remainder || (report->host.label_count == 1 &&
						 !strcmp(report->host.label_values[0], "a=b, c"))),
	       "facts", report->host.label_count, 1);
	expect(report->body.length <= sizeof body &&
		       !memcmp(report->body.at, body, report->body.length),
	       "body", report->body.length, 0);
	expect(report->host.start_ns == 1000 * report->host.report_seq, "time",
	       report->host.start_ns, 1000 * report->host.report_seq);
}

static void higher(uint64_t *to, uint64_t value)
{
	if (value > *to)
		*to = value;
}

static void take(struct run *run, const struct spool_report *report)
{
	expect(report->is_remainder || report->host.report_seq > run->last_seq, "order",
	       report->host.report_seq, run->last_seq + 1);
	higher(&run->last_seq, report->host.report_seq);
	higher(&run->told_taken, counter_of(report, "taken"));
	higher(&run->told_lost, counter_of(report, "lost.spool"));
	higher(&run->told_refused, counter_of(report, "lost.refused"));
	run->samples += report->samples;
	expect(run->told_taken == run->samples + run->told_lost + run->told_refused,
	       "taken = samples + lost", run->samples + run->told_lost + run->told_refused,
	       run->told_taken);
}

/* The server takes it, or refuses it. */
static void deliver(struct spool *spool, bool is_refused)
{
	const struct spool_report *report = spool_first(spool);
	struct run *run;

	if (!report)
		return;
	run = &runs[report->run[0]];
	expect_facts(report);
	if (is_refused && report->run[0] == run_number && !report->is_remainder)
		run->live_refused = counter_of(report, "lost.refused") + report->samples;
	if (!is_refused && (!are_repeats_known || report->is_remainder ||
			    report->host.report_seq > run->last_seq)) {
		shared->is_telling = true;
		take(run, report);
		shared->is_telling = false;
	}
	spool_remove_first(spool, is_refused ? SPOOL_REFUSED : SPOOL_SENT);
}

static void deliver_all(struct spool *spool)
{
	for (int i = 0; i < 100000 && spool_first(spool); i++)
		deliver(spool, false);
	CHECK(!spool_first(spool));
}

static void check_quiet(const char *what)
{
	printf("# %s\n", what);
	CHECK_NUMBER(quiet_failures, 0);
	quiet_failures = 0;
}

/* Anything that a run may do; refusals only where the server's answers are not lost. */
static void do_anything(struct spool *spool, bool may_refuse)
{
	if (rand() % 5 < 3)
		add_sized(spool, (uint64_t)(rand() % 50), (size_t)(rand() % 9000));
	else
		deliver(spool, may_refuse && rand() % 20 == 0);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Roll-ups change how much is read and nothing of what is answered: the same questions with and
 * without them, and against what the sender counted; sums in the file by sqlite3. */
#include "tests/check.h"

#include <dlfcn.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

#include "symbol-server/store/sqlite/days/hours.h"
#include "symbol-server/store/sqlite/rollups/rollup.h"
#include "tests/unit/store/batches.h"

enum { HOSTS = 5, SERVICES = 3, MINUTES = 200, STEP = 7, STACKS = 12 };

/* Points at which processes are killed: every second one, before or after something, in deletion
 * every sixth; all of them take longer (-DPOINT_STEP=1). */
#ifndef POINT_STEP
#define POINT_STEP 2
#endif

static const int64_t minute_ms = 60000;
static int64_t start_ms; /* 11:00, four days before today */
int fsync(int fd)
{
	return fd < 0 ? -1 : 0;
}

int fdatasync(int fd)
{
	return fd < 0 ? -1 : 0;
}

/* ---- clocks that jump ---- */

static _Atomic int64_t clock_jump_ms, elapsed_jump_ms;

int clock_gettime(clockid_t clock, struct timespec *now)
{
	static int (*real)(clockid_t, struct timespec *);
	int result;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
	result = real(clock, now);
	if (clock == CLOCK_REALTIME)
		now->tv_sec += clock_jump_ms / 1000;
	if (clock == CLOCK_BOOTTIME)
		now->tv_sec += elapsed_jump_ms / 1000;
	return result;
}

/* ---- points at which a process is killed ---- */

static atomic_uint points, kill_at; /* kill_at 0: never */

static void point(void)
{
	if (atomic_fetch_add(&points, 1) + 1 == kill_at)
		raise(SIGKILL);
}

int sqlite3_exec(sqlite3 *db, const char *sql, sqlite3_callback fn, void *context, char **message)
{
	static int (*real)(sqlite3 *, const char *, sqlite3_callback, void *, char **);
	bool is_point = (strstr(sql, "COMMIT") || strstr(sql, "TRUNCATE")) &&
			!sqlite3_db_readonly(db, "main");
	int code;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "sqlite3_exec");
	if (is_point)
		point();
	code = real(db, sql, fn, context, message);
	if (is_point)
		point();
	return code;
}

int rename(const char *from, const char *to)
{
	static int (*real)(const char *, const char *);
	int result;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "rename");
	point();
	result = real(from, to);
	point();
	return result;
}

int unlink(const char *path)
{
	static int (*real)(const char *);
	int result;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "unlink");
	result = real(path);
	point();
	return result;
}

/* ---- what was sent ---- */

struct sent {
	int64_t time_ms;
	unsigned host, service, stack, thread;
	uint64_t samples;
	bool is_deleted;
};
static struct sent sent[1 << 16];
static unsigned sent_count;

static char host_names[HOSTS][8], service_names[SERVICES][8], thread_names[3][8];

static void make_names(void)
{
	for (unsigned i = 0; i < HOSTS; i++)
		snprintf(host_names[i], sizeof host_names[i], "h%u", i);
	for (unsigned i = 0; i < SERVICES; i++)
		snprintf(service_names[i], sizeof service_names[i], "s%u", i);
	for (unsigned i = 0; i < 3; i++)
		snprintf(thread_names[i], sizeof thread_names[i], "t%u", i);
}

static unsigned next_random(unsigned below)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state % below);
}

static void fill_counters(struct batch_maker *maker, unsigned host, int64_t time_ms, uint64_t taken)
{
	static uint64_t taken_of[HOSTS], sequence[HOSTS];
	struct batch_counters *counters = &maker->batch.counters[maker->batch.counters_count++];

	memset(counters, 0, sizeof *counters);
	counters->agent_id[0] = (uint8_t)(host + 1);
	counters->host = text_from(host_names[host]);
	counters->agent_version = counters->kernel_release = text_from("1");
	counters->report_seq = ++sequence[host];
	counters->acknowledged_seq = sequence[host] - 1;
	counters->taken = taken_of[host] += taken;
	counters->time_ms = time_ms;
	counters->received_ms = time_ms + 1;
}

/* One report of one host, all services, a few stacks of each. */
static bool send_report(struct samples_store *store, unsigned host, int64_t time_ms,
			uint32_t report)
{
	struct batch_maker maker;
	uint64_t taken = 0;
	bool ok;

	batch_start(&maker);
	for (unsigned service = 0; service < SERVICES; service++) {
		uint32_t series = batch_series(&maker, host_names[host], service_names[service]);

		if ((host + service) % 4 == 3)
			continue;
		batch_profile(&maker, series, time_ms, report, service)->is_counted = true;
		for (unsigned i = 0; i < 3; i++) {
			struct sent *to = &sent[sent_count++];

			*to = (struct sent){time_ms,        host,
					    service,        next_random(STACKS),
					    next_random(3), 1 + next_random(4),
					    false};
			batch_sample(&maker, batch_stack(&maker, to->stack, 5),
				     thread_names[to->thread], to->samples, to->samples * 10000000);
			taken += to->samples;
		}
	}
	fill_counters(&maker, host, time_ms, taken);
	ok = add_and_wait(store, &maker, NULL, NULL);
	arena_release(&maker.arena);
	return ok;
}

static bool send_all(struct samples_store *store)
{
	uint32_t report = 0;

	for (unsigned minute = 0; minute < MINUTES; minute += STEP)
		for (unsigned host = 0; host < HOSTS; host++)
			if (!send_report(store, host, start_ms + minute * minute_ms + host * 1000,
					 ++report))
				return false;
	return true;
}

/* ---- questions ---- */

struct question {
	const char *host, *service, *thread;
	int64_t from_ms, until_ms;
	bool by_thread;
};

static bool has_label(const struct series_labels *labels, const char *name, const char *value)
{
	for (uint32_t i = 0; i < labels->count; i++)
		if (!strcmp(labels->names[i], name))
			return !strcmp(labels->values[i], value);
	return false;
}

static bool is_wanted(void *context, const struct series_labels *labels)
{
	const struct question *question = context;

	return (!question->host || has_label(labels, "host", question->host)) &&
	       (!question->service || has_label(labels, "service", question->service));
}

static bool is_thread_wanted(void *context, const char *thread)
{
	return !strcmp(thread, ((const struct question *)context)->thread);
}

struct answer {
	uint64_t samples, value, by_stack[STACKS], taken, stored;
	uint32_t hosts;
	int64_t from_ms, until_ms, resolution_ms;
};

static struct answer ask(struct samples_store *store, struct question question)
{
	static const char *const labels[] = {"service", "host"};
	struct samples_query query = {.tenant = 1,
				      .type = "on-cpu",
				      .from_ms = question.from_ms,
				      .until_ms = question.until_ms,
				      .series_wanted = question.host || question.service ? is_wanted
											 : NULL,
				      .thread_wanted = question.thread ? is_thread_wanted : NULL,
				      .by_thread = question.by_thread,
				      .labels = labels,
				      .label_count = question.host ? 2 : 1,
				      .context = &question};
	struct answer answer = {0};
	struct error err = {0};
	struct samples_result *result = samples_query(store, &query, &err);

	if (!result) {
		printf("# %s\n", err.message);
		return answer;
	}
	for (size_t i = 0; i < result->stack_count; i++) {
		const struct result_stack *stack = &result->stacks[i];
		uint64_t address = result->locations[stack->locations[0]].address;

		answer.samples += stack->samples;
		answer.value += stack->value;
		answer.by_stack[(address - 0x1000) / 64 % STACKS] += stack->samples;
	}
	for (uint32_t i = 0; i < result->host_count; i++) {
		answer.taken += result->hosts[i].taken;
		answer.stored += result->hosts[i].samples;
	}
	answer.hosts = result->host_count;
	answer.from_ms = result->from_ms;
	answer.until_ms = result->until_ms;
	answer.resolution_ms = result->resolution_ms;
	samples_result_free(result);
	return answer;
}

/* What the sender says. */
static struct answer tally(const struct question *question)
{
	struct answer answer = {0};
	bool has_host[HOSTS] = {false};

	for (unsigned i = 0; i < sent_count; i++) {
		const struct sent *one = &sent[i];

		if (one->time_ms / minute_ms * minute_ms < question->from_ms ||
		    one->time_ms >= question->until_ms ||
		    (one->is_deleted && (question->host || question->service)) ||
		    (question->host && strcmp(question->host, host_names[one->host])) ||
		    (question->service && strcmp(question->service, service_names[one->service])))
			continue;
		has_host[one->host] = true;
		if (question->thread && strcmp(question->thread, thread_names[one->thread]))
			continue;
		if (one->is_deleted)
			continue;
		answer.samples += one->samples;
		answer.value += one->samples * 10000000;
		answer.by_stack[one->stack] += one->samples;
	}
	for (unsigned i = 0; i < sent_count; i++) /* accounts are of all services of a host */
		if (sent[i].time_ms / minute_ms * minute_ms >= question->from_ms &&
		    sent[i].time_ms < question->until_ms && has_host[sent[i].host])
			answer.taken += sent[i].samples,
				answer.stored += sent[i].is_deleted ? 0 : sent[i].samples;
	for (unsigned i = 0; i < HOSTS; i++)
		answer.hosts += has_host[i];
	return answer;
}

static bool same(const struct answer *a, const struct answer *b)
{
	return a->samples == b->samples && a->value == b->value && a->taken == b->taken &&
	       a->stored == b->stored && a->hosts == b->hosts &&
	       !memcmp(a->by_stack, b->by_stack, sizeof a->by_stack);
}

static bool is_right(struct samples_store *store, const struct question *question,
		     int64_t *resolution_ms)
{
	struct answer truth = tally(question), with, without;

	with = ask(store, *question);
	sqlite_samples_of(store)->no_rollups = true;
	without = ask(store, *question);
	sqlite_samples_of(store)->no_rollups = false;
	*resolution_ms = with.resolution_ms;
	if (same(&with, &truth) && same(&without, &truth) && without.resolution_ms == minute_ms &&
	    with.from_ms == without.from_ms && with.until_ms == without.until_ms)
		return true;
	printf("# host %s service %s thread %s from minute %lld until %lld: sent %llu of %u hosts, "
	       "taken %llu; with %llu of %u, %llu; without %llu of %u, %llu\n",
	       question->host ? question->host : "any",
	       question->service ? question->service : "any",
	       question->thread ? question->thread : "any",
	       (long long)(question->from_ms - start_ms) / minute_ms,
	       (long long)(question->until_ms - start_ms) / minute_ms,
	       (unsigned long long)truth.samples, truth.hosts, (unsigned long long)truth.taken,
	       (unsigned long long)with.samples, with.hosts, (unsigned long long)with.taken,
	       (unsigned long long)without.samples, without.hosts,
	       (unsigned long long)without.taken);
	return false;
}

/* Ranges with ragged and with straight ends; *rolled: how many were answered from roll-ups. */
static unsigned count_wrong(struct samples_store *store, unsigned *rolled)
{
	static const int minutes[] = {-30, 0, 1, 9, 10, 11, 60, 95, 100, 120, 150, 199, 240};
	const unsigned count = sizeof minutes / sizeof *minutes;
	unsigned wrong = 0;

	*rolled = 0;
	for (unsigned kind = 0; kind < 6; kind++)
		for (unsigned i = 0; i < count; i++)
			for (unsigned k = i + 1; k < count; k++) {
				struct question question = {
					.host = kind & 1 ? host_names[kind % HOSTS] : NULL,
					.service = kind & 2 ? service_names[kind % SERVICES] : NULL,
					.thread = kind > 3 ? thread_names[kind % 3] : NULL,
					.by_thread = kind == 4,
					.from_ms = start_ms + minutes[i] * minute_ms,
					.until_ms = start_ms + minutes[k] * minute_ms};
				int64_t resolution_ms;

				wrong += !is_right(store, &question, &resolution_ms);
				*rolled += resolution_ms > minute_ms;
			}
	return wrong;
}

/* ---- the file, as another program reads it ---- */

static uint64_t ask_file(const char *path, const char *sql)
{
	char command[1024];
	uint64_t number = UINT64_MAX;
	FILE *pipe;

	snprintf(command, sizeof command, "sqlite3 %s '%s'", path, sql);
	pipe = popen(command, "r");
	if (!pipe || fscanf(pipe, "%" SCNu64, &number) != 1)
		number = UINT64_MAX;
	if (pipe)
		pclose(pipe);
	return number;
}

static uint64_t ask_sqlite(const char *directory, const char *sql)
{
	char path[256];

	day_file_path(directory, (uint32_t)(start_ms / day_ms), path, sizeof path);
	return ask_file(path, sql);
}

static uint64_t ask_month(const char *directory, const char *sql)
{
	char path[256];

	month_file_path(directory, month_first((uint32_t)(start_ms / day_ms)), path, sizeof path);
	return ask_file(path, sql);
}

static uint64_t all_sent(void)
{
	uint64_t samples = 0;

	for (unsigned i = 0; i < sent_count; i++)
		samples += sent[i].is_deleted ? 0 : sent[i].samples;
	return samples;
}

static void test_equal_answers(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	struct samples_counters counters;
	unsigned rolled;

	CHECK(store && send_all(store));
	CHECK_NUMBER(count_wrong(store, &rolled), 0);
	CHECK_NUMBER(rolled, 0); /* all of it is in memory */
	CHECK(samples_fold(store, NULL));
	CHECK_NUMBER(count_wrong(store, &rolled), 0);
	CHECK(rolled > 100);
	samples_counters(store, &counters);
	CHECK(counters.rollup_pairs > 1000);
	/* Each sample is once in each level. */
	CHECK_NUMBER(ask_sqlite(directory, "SELECT sum(samples) FROM samples"), all_sent());
	CHECK_NUMBER(ask_sqlite(directory, "SELECT sum(samples) FROM rollups WHERE level = 1"),
		     all_sent());
	CHECK_NUMBER(ask_sqlite(directory, "SELECT sum(samples) FROM rollups WHERE level = 2"),
		     all_sent());
	CHECK_NUMBER(
		ask_sqlite(directory, "SELECT count(DISTINCT series) FROM rollups WHERE level = 2"),
		SERVICES);
	samples_close(store);
	store = open_store(directory, NULL);
	CHECK_NUMBER(count_wrong(store, &rolled), 0);
	CHECK(rolled > 100);
	samples_close(store);
	remove_directory(directory);
}

/* Samples that come days after their time are right at once, and rolled up later. */
static void test_late_samples(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	unsigned rolled, late = sent_count = 0;

	CHECK(store && send_all(store) && samples_fold(store, NULL));
	sqlite_samples_of(store)->rollup_late_pause_ms = 3600000;
	for (unsigned round = 0; round < 3; round++) {
		/* The first late ones are rolled up at once, the next wait for company. */
		for (unsigned host = 0; host < HOSTS; host++)
			CHECK(send_report(store, host, start_ms + (35 + 10 * round) * minute_ms,
					  10000 + ++late));
		CHECK_NUMBER(count_wrong(store, &rolled), 0); /* in memory */
		CHECK(samples_fold(store, NULL));
		CHECK_NUMBER(count_wrong(store, &rolled), 0); /* in the file */
		CHECK(rolled > 100);
		CHECK(ask_sqlite(directory, "SELECT sum(samples) FROM rollups WHERE level = 2") ==
			      all_sent() ||
		      round);
	}
	CHECK(ask_sqlite(directory, "SELECT sum(samples) FROM rollups WHERE level = 1") <
	      all_sent());
	CHECK_NUMBER(
		ask_sqlite(directory, "SELECT count(*) FROM rollup_marks WHERE newest > through"),
		2);
	samples_close(store);
	store = open_store(directory, NULL);
	sqlite_samples_of(store)->rollup_late_pause_ms = 0;
	CHECK(samples_fold(store, NULL));
	CHECK_NUMBER(ask_sqlite(directory, "SELECT sum(samples) FROM rollups WHERE level = 1"),
		     all_sent());
	CHECK_NUMBER(ask_sqlite(directory, "SELECT sum(samples) FROM rollups WHERE level = 2"),
		     all_sent());
	CHECK_NUMBER(count_wrong(store, &rolled), 0);
	samples_close(store);
	remove_directory(directory);
}

/* ---- when only roll-ups are kept ---- */

static bool is_right_as_widened(struct samples_store *store, struct question question,
				int64_t step_ms)
{
	struct answer answer = ask(store, question), truth;
	int64_t from_ms = question.from_ms, until_ms = question.until_ms;

	question.from_ms = answer.from_ms;
	question.until_ms = answer.until_ms;
	truth = tally(&question);
	if (same(&answer, &truth) && answer.from_ms <= from_ms && answer.until_ms >= until_ms &&
	    from_ms - answer.from_ms < step_ms && answer.until_ms - until_ms < step_ms)
		return true;
	printf("# host %s service %s from %lld until %lld: sent %llu of %u hosts, taken %llu, kept "
	       "%llu; "
	       "answered %llu of %u, %llu, %llu\n",
	       question.host ? question.host : "any", question.service ? question.service : "any",
	       (long long)(answer.from_ms - start_ms) / minute_ms,
	       (long long)(answer.until_ms - start_ms) / minute_ms,
	       (unsigned long long)truth.samples, truth.hosts, (unsigned long long)truth.taken,
	       (unsigned long long)truth.stored, (unsigned long long)answer.samples, answer.hosts,
	       (unsigned long long)answer.taken, (unsigned long long)answer.stored);
	return false;
}

static unsigned count_wrong_as_widened(struct samples_store *store, int64_t step_ms)
{
	static const int minutes[] = {-30, 0, 1, 9, 10, 11, 60, 95, 100, 120, 150, 199, 240};
	const unsigned count = sizeof minutes / sizeof *minutes;
	unsigned wrong = 0;

	for (unsigned kind = 0; kind < 4; kind++)
		for (unsigned i = 0; i < count; i++)
			for (unsigned k = i + 1; k < count; k++)
				wrong += !is_right_as_widened(
					store,
					(struct question){
						.host = kind & 1 ? host_names[kind] : NULL,
						.service = kind & 2 ? service_names[1] : NULL,
						.by_thread = k % 2,
						.from_ms = start_ms + minutes[i] * minute_ms,
						.until_ms = start_ms + minutes[k] * minute_ms},
					step_ms);
	return wrong;
}

static struct samples_store *open_keeping(const char *directory, int64_t raw_ms, int64_t rolled_ms,
					  int64_t hours_ms)
{
	struct samples_store_options options = {.directory = directory,
						.keep_ms = {raw_ms, rolled_ms, hours_ms}};

	return samples_open(&options, NULL);
}

static void test_reduced_day(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	struct samples_counters counters;

	sent_count = 0;
	CHECK(store && send_all(store) && samples_fold(store, NULL));
	samples_close(store);

	/* No longer kept by the minute: at once not answered so, and soon not there. */
	store = open_keeping(directory, 2 * day_ms, 30 * day_ms, 0);
	CHECK_NUMBER(count_wrong_as_widened(store, ROLLUP_BUCKET_MS), 0);
	CHECK(samples_fold(store, NULL));
	samples_counters(store, &counters);
	CHECK_NUMBER(counters.days_reduced, 1);
	CHECK_NUMBER(counters.level_bytes[SAMPLES_RAW], 0);
	CHECK(counters.level_bytes[SAMPLES_10M] > 0);
	CHECK(counters.forecast_bytes > 27 * counters.level_bytes[SAMPLES_10M]);
	CHECK_NUMBER(counters.rollup_lag_ms, 0);
	CHECK_NUMBER(ask_sqlite(directory, "SELECT count(*) FROM samples"), 0);
	CHECK_NUMBER(ask_sqlite(directory, "SELECT sum(samples) FROM rollups WHERE level = 1"),
		     all_sent());
	CHECK_NUMBER(count_wrong_as_widened(store, ROLLUP_BUCKET_MS), 0);

	/* What comes even later counts at once, and is added. */
	for (unsigned host = 0; host < HOSTS; host++)
		CHECK(send_report(store, host, start_ms + 37 * minute_ms, 20000 + host));
	CHECK_NUMBER(count_wrong_as_widened(store, ROLLUP_BUCKET_MS), 0);
	CHECK(samples_fold(store, NULL));
	CHECK_NUMBER(count_wrong_as_widened(store, ROLLUP_BUCKET_MS), 0);
	samples_close(store);
	store = open_keeping(directory, 2 * day_ms, 30 * day_ms, 0);
	CHECK(samples_fold(store, NULL));
	samples_counters(store, &counters);
	CHECK_NUMBER(counters.days_reduced, 0);
	CHECK_NUMBER(count_wrong_as_widened(store, ROLLUP_BUCKET_MS), 0);
	CHECK_NUMBER(ask_sqlite(directory, "SELECT sum(samples) FROM rollups WHERE level = 2"),
		     all_sent());
	samples_close(store);

	/* Nor by ten minutes. */
	store = open_keeping(directory, day_ms, 2 * day_ms, 0);
	CHECK_NUMBER(ask(store, (struct question){.from_ms = start_ms - day_ms,
						  .until_ms = start_ms + day_ms})
			     .samples,
		     0);
	CHECK(samples_fold(store, NULL));
	samples_counters(store, &counters);
	CHECK_NUMBER(counters.days, 0);
	CHECK_NUMBER(counters.days_deleted, 1);
	samples_close(store);
	remove_directory(directory);
}

/* What is kept: ten minutes, hours. */
static const int64_t reduced_ms[] = {172800000, 2592000000, 0};
static const int64_t deleted_ms[] = {86400000, 172800000, 25920000000};

/* ---- deleting ---- */

struct choice { /* of what goes; NULL: any */
	const char *host, *service;
	int64_t from_ms, until_ms;
	bool by_thread;
};

static bool is_chosen(void *context, const struct series_labels *labels)
{
	const struct choice *choice = context;

	return (!choice->host || has_label(labels, "host", choice->host)) &&
	       (!choice->service || has_label(labels, "service", choice->service));
}

static bool is_any_thread(void *context, const char *thread)
{
	(void)context;
	(void)thread;
	return true;
}

static bool delete (struct samples_store *store, const struct choice *choice,
		    struct samples_deleted *deleted, struct error *err)
{
	struct samples_query query = {.tenant = 1,
				      .from_ms = choice->from_ms,
				      .until_ms = choice->until_ms,
				      .series_wanted = is_chosen,
				      .thread_wanted = choice->by_thread ? is_any_thread : NULL,
				      .context = (void *)choice};

	return samples_delete(store, &query, deleted, err);
}

/* What the sender has to forget. Returns how much. */
static uint64_t forget(const struct choice *choice, int64_t step_ms)
{
	int64_t from_ms = choice->from_ms / step_ms * step_ms,
		until_ms = (choice->until_ms + step_ms - 1) / step_ms * step_ms;
	uint64_t count = 0;

	for (unsigned i = 0; i < sent_count; i++) {
		struct sent *one = &sent[i];

		if (one->is_deleted || one->time_ms < from_ms || one->time_ms >= until_ms ||
		    (choice->host && strcmp(choice->host, host_names[one->host])) ||
		    (choice->service && strcmp(choice->service, service_names[one->service])))
			continue;
		one->is_deleted = true;
		count += one->samples;
	}
	return count;
}

/* What is deleted is in no roll-up, and what is left in all of them; accounts keep what was taken.
 */
static void test_deletion(void)
{
	const struct choice choice = {.service = service_names[0],
				      .until_ms = start_ms + 5 * day_ms};
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	struct question all = {.from_ms = start_ms / day_ms * day_ms - 4 * day_ms,
			       .until_ms = start_ms + day_ms};
	struct samples_deleted deleted;

	sent_count = 0;
	CHECK(store && send_all(store) && samples_fold(store, NULL));
	CHECK(delete (store, &choice, &deleted, NULL));
	CHECK_NUMBER(deleted.samples, forget(&choice, minute_ms));
	for (unsigned round = 0; round < 2; round++) {
		CHECK_NUMBER(ask(store, all).samples, all_sent());
		CHECK(samples_fold(store, NULL));
	}
	CHECK_NUMBER(ask(store, all).resolution_ms, hour_ms);
	CHECK_NUMBER(ask_sqlite(directory, "SELECT sum(samples) FROM rollups WHERE level = 2"),
		     all_sent());
	CHECK_NUMBER(ask_month(directory, "SELECT sum(samples) FROM rollups WHERE level = 3"),
		     all_sent());
	samples_close(store);
	remove_directory(directory);
}

static bool late_reports(struct samples_store *store, unsigned minute, unsigned number)
{
	bool ok = true;

	for (unsigned host = 0; host < HOSTS; host++)
		ok = ok && send_report(store, host, start_ms + minute * minute_ms, number + host);
	return ok;
}

/* The choice is deleted and is what the sender has forgotten, at once, after a fold and a start. */
static struct samples_store *check_deletion(const char *directory, struct samples_store *store,
					    const int64_t *keep_ms, const struct choice *choice)
{
	const int64_t step_ms = keep_ms[2] ? hour_ms : ROLLUP_BUCKET_MS;
	struct samples_deleted deleted;
	struct error err = {0};

	CHECK(delete (store, choice, &deleted, &err));
	if (err.kind)
		printf("# %s\n", err.message);
	CHECK_NUMBER(deleted.samples, forget(choice, step_ms));
	CHECK_NUMBER(deleted.from_ms, choice->from_ms / step_ms * step_ms);
	CHECK_NUMBER(deleted.until_ms, (choice->until_ms + step_ms - 1) / step_ms * step_ms);
	CHECK_NUMBER(count_wrong_as_widened(store, step_ms), 0);
	CHECK(samples_fold(store, NULL));
	CHECK_NUMBER(count_wrong_as_widened(store, step_ms), 0);
	CHECK(delete (store, choice, &deleted, NULL));
	CHECK_NUMBER(deleted.samples, 0);
	samples_close(store);
	store = open_keeping(directory, keep_ms[0], keep_ms[1], keep_ms[2]);
	CHECK(samples_fold(store, NULL));
	CHECK_NUMBER(count_wrong_as_widened(store, step_ms), 0);
	return store;
}

/* Days of which only ten minutes, or hours, are left; late samples that are in no roll-up yet go
 * with them, and later ones stay. */
static void test_deletion_of_sums(const int64_t *keep_ms)
{
	const struct choice choices[] = {
		{NULL, service_names[0], start_ms + 33 * minute_ms, start_ms + 95 * minute_ms,
		 false},
		{host_names[2], NULL, start_ms - 7 * minute_ms, start_ms + 61 * minute_ms, false},
		{host_names[1], service_names[1], 0, start_ms + day_ms / 2, false},
		{host_names[3], NULL, start_ms + 100 * minute_ms, start_ms + 101 * minute_ms,
		 false},
	};
	const struct choice threads = {NULL, NULL, start_ms, start_ms + hour_ms, true};
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	struct samples_deleted deleted;
	struct error err = {0};

	sent_count = 0;
	CHECK(store && send_all(store) && samples_fold(store, NULL));
	samples_close(store);
	store = open_keeping(directory, keep_ms[0], keep_ms[1], keep_ms[2]);
	CHECK(samples_fold(store, NULL) && samples_fold(store, NULL));
	CHECK_NUMBER(ask_sqlite(directory, "SELECT count(*) FROM samples") % UINT64_MAX, 0);
	CHECK(!delete (store, &threads, &deleted, &err));
	CHECK_NUMBER(err.kind, ERROR_OPTION);
	CHECK_NUMBER(deleted.samples, 0);
	CHECK_NUMBER(count_wrong_as_widened(store, keep_ms[2] ? hour_ms : ROLLUP_BUCKET_MS), 0);
	for (unsigned i = 0; i < sizeof choices / sizeof *choices; i++) {
		sqlite_samples_of(store)->rollup_late_pause_ms = i % 2 ? 0 : hour_ms;
		CHECK(late_reports(store, 37, 50000 + i * HOSTS));
		CHECK(i % 2 || samples_fold(store, NULL));
		CHECK(i % 2 || late_reports(store, 37, 60000 + i * HOSTS));
		store = check_deletion(directory, store, keep_ms, &choices[i]);
	}
	samples_close(store);
	remove_directory(directory);
}

/* ---- hours ---- */

/* Whole days and ragged ends around the one day that has samples. */
static unsigned count_wrong_days(struct samples_store *store, unsigned *hours)
{
	const int64_t midnight = start_ms / day_ms * day_ms;
	const int64_t froms[] = {midnight - 5 * day_ms, midnight - 3 * day_ms - 7 * minute_ms,
				 midnight, start_ms + 33 * minute_ms};
	const int64_t untils[] = {midnight + day_ms, start_ms + 95 * minute_ms,
				  midnight + 3 * day_ms + 11 * minute_ms};
	unsigned wrong = 0;

	*hours = 0;
	for (unsigned kind = 0; kind < 4; kind++)
		for (unsigned i = 0; i < 4; i++)
			for (unsigned k = 0; k < 3; k++) {
				struct question question = {
					.host = kind & 1 ? host_names[kind] : NULL,
					.service = kind & 2 ? service_names[1] : NULL,
					.from_ms = froms[i],
					.until_ms = untils[k]};
				int64_t resolution_ms;

				if (question.from_ms >= question.until_ms)
					continue;
				wrong += !is_right(store, &question, &resolution_ms);
				*hours += resolution_ms == hour_ms;
			}
	return wrong;
}

static void test_hours(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	struct samples_counters counters;
	unsigned hours, late = 0;

	sent_count = 0;
	CHECK(store && send_all(store) && samples_fold(store, NULL));
	CHECK_NUMBER(ask_month(directory, "SELECT sum(samples) FROM rollups WHERE level = 3"),
		     all_sent());
	CHECK_NUMBER(ask_month(directory, "SELECT sum(samples) FROM rollups WHERE level = 4"),
		     all_sent());
	CHECK_NUMBER(ask_month(directory, "SELECT count(DISTINCT bucket) FROM rollups"),
		     (MINUTES + 59) / 60);
	CHECK_NUMBER(count_wrong_days(store, &hours), 0);
	CHECK(hours > 10);
	sqlite_samples_of(store)->rollup_late_pause_ms = 3600000;
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned host = 0; host < HOSTS; host++)
			CHECK(send_report(store, host, start_ms + (40 + 50 * round) * minute_ms,
					  30000 + ++late));
		CHECK_NUMBER(count_wrong_days(store, &hours), 0);
		CHECK(samples_fold(store, NULL));
		CHECK_NUMBER(count_wrong_days(store, &hours), 0);
		CHECK(hours > 10);
	}
	sqlite_samples_of(store)->rollup_late_pause_ms = 0;
	samples_close(store);

	store = open_keeping(directory, day_ms, 2 * day_ms, 300 * day_ms);
	CHECK(samples_fold(store, NULL)); /* the late ones get their roll-ups */
	CHECK(samples_fold(store, NULL)); /* then the day goes */
	samples_counters(store, &counters);
	CHECK_NUMBER(counters.days_deleted, 1);
	CHECK_NUMBER(counters.days, 0);
	CHECK(counters.level_bytes[SAMPLES_1H] > 0);
	CHECK_NUMBER(ask_month(directory, "SELECT sum(samples) FROM rollups WHERE level = 3"),
		     all_sent());
	CHECK_NUMBER(count_wrong_as_widened(store, hour_ms), 0);
	for (unsigned host = 0; host < HOSTS; host++)
		CHECK(send_report(store, host, start_ms + 37 * minute_ms, 40000 + host));
	CHECK_NUMBER(count_wrong_as_widened(store, hour_ms), 0);
	CHECK(samples_fold(store, NULL));
	CHECK_NUMBER(count_wrong_as_widened(store, hour_ms), 0);
	samples_close(store);
	store = open_keeping(directory, day_ms, 2 * day_ms, 300 * day_ms);
	CHECK(samples_fold(store, NULL));
	CHECK_NUMBER(ask_month(directory, "SELECT sum(samples) FROM rollups WHERE level = 4"),
		     all_sent());
	samples_counters(store, &counters);
	CHECK_NUMBER(counters.days, 0);
	CHECK_NUMBER(count_wrong_as_widened(store, hour_ms), 0);
	samples_close(store);
	remove_directory(directory);
}

/* ---- a clock that is wrong ---- */

static unsigned days_left(struct samples_store *store)
{
	struct samples_counters counters;

	for (unsigned i = 0; i < 2; i++)
		CHECK(samples_fold(store, NULL));
	samples_counters(store, &counters);
	CHECK_NUMBER(counters.days_reduced, 0);
	return (unsigned)counters.days;
}

/* It is a year ahead at start, or jumps there: nothing goes; and goes when the time really passes.
 */
static void test_wrong_clock(void)
{
	const int64_t keep_ms[] = {7 * day_ms, 30 * day_ms, 90 * day_ms}, year_ms = 365 * day_ms;
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	struct samples_counters counters;
	unsigned rolled;

	sent_count = 0;
	CHECK(store && send_all(store) && samples_fold(store, NULL));
	samples_close(store);
	for (unsigned round = 0; round < 2; round++) {
		clock_jump_ms = round ? 0 : year_ms;
		store = open_keeping(directory, keep_ms[0], keep_ms[1], keep_ms[2]);
		CHECK_NUMBER(days_left(store), 1);
		CHECK_NUMBER(count_wrong(store, &rolled), 0);
		clock_jump_ms = round ? year_ms : 0;
		CHECK_NUMBER(days_left(store), 1);
		CHECK_NUMBER(count_wrong(store, &rolled), 0);
		clock_jump_ms = -year_ms;
		CHECK_NUMBER(days_left(store), 1);
		clock_jump_ms = 0;
		samples_close(store);
	}
	CHECK_NUMBER(ask_sqlite(directory, "SELECT sum(samples) FROM samples"), all_sent());
	clock_jump_ms = year_ms;
	store = open_keeping(directory, keep_ms[0], keep_ms[1], keep_ms[2]);
	CHECK_NUMBER(days_left(store), 1);
	elapsed_jump_ms = 17 * day_ms;
	for (unsigned i = 0; i < 3; i++)
		CHECK(samples_fold(store, NULL));
	samples_counters(store, &counters);
	CHECK_NUMBER(counters.days, 0);
	samples_close(store);
	clock_jump_ms = elapsed_jump_ms = 0;
	remove_directory(directory);
}

/* ---- killed while roll-ups are made, minutes go and days go ---- */

static void run_turns(const char *directory, const int64_t *keep_ms)
{
	struct samples_store *store = open_keeping(directory, keep_ms[0], keep_ms[1], keep_ms[2]);

	for (unsigned i = 0; i < 3; i++)
		if (!store || !samples_fold(store, NULL))
			_exit(2);
	samples_close(store);
	_exit(0);
}

static const struct choice *deleting; /* what run_turns() does instead of waiting; NULL: nothing */

static void run_deletion(const char *directory, const int64_t *keep_ms)
{
	struct samples_store *store = open_keeping(directory, keep_ms[0], keep_ms[1], keep_ms[2]);
	struct samples_deleted deleted;

	if (!store || !delete (store, deleting, &deleted, NULL))
		_exit(2);
	samples_close(store);
	_exit(0);
}

/* False: it came to its end before that point. */
static bool kill_run(const char *directory, const int64_t *keep_ms, unsigned at)
{
	pid_t child = fork();
	int status;

	if (!child) {
		points = 0;
		kill_at = at;
		if (deleting)
			run_deletion(directory, keep_ms);
		run_turns(directory, keep_ms);
	}
	waitpid(child, &status, 0);
	if (WIFEXITED(status))
		CHECK_NUMBER(WEXITSTATUS(status), 0);
	return WIFSIGNALED(status);
}

static bool is_all_there(struct samples_store *store, bool is_hours)
{
	static const int minutes[] = {-30, 0, 35, 120, 240};
	bool ok = true;

	for (unsigned i = 0; i < 4; i++)
		ok = is_right_as_widened(
			     store,
			     (struct question){.host = i % 2 ? host_names[1] : NULL,
					       .service = i > 1 ? service_names[1] : NULL,
					       .from_ms = start_ms + minutes[i] * minute_ms,
					       .until_ms = start_ms + minutes[i + 1] * minute_ms},
			     is_hours ? hour_ms : ROLLUP_BUCKET_MS) &&
		     ok;
	return ok;
}

/* Wherever it ended: taken is what was sent, and what is stored is what is shown. */
static bool is_closed(struct samples_store *store)
{
	struct question all = {.from_ms = start_ms - hour_ms, .until_ms = start_ms + day_ms / 2};
	struct answer answer = ask(store, all), truth = tally(&all);

	return answer.taken == truth.taken && answer.stored == answer.samples &&
	       answer.samples >= truth.samples;
}

static bool recovers(const char *directory, const int64_t *keep_ms)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (!child) {
		struct error err = {0};
		struct samples_store *store = open_keeping(directory, keep_ms[0], keep_ms[1],
							   keep_ms[2]);
		struct samples_deleted deleted;
		bool ok = store &&
			  (deleting ? is_closed(store) && delete (store, deleting, &deleted, &err)
				    : true);

		ok = ok && is_all_there(store, keep_ms[2]) && samples_fold(store, &err) &&
		     is_all_there(store, keep_ms[2]) && samples_fold(store, &err) &&
		     is_all_there(store, keep_ms[2]);
		samples_close(store);
		if (!ok)
			printf("# %s\n", store ? err.message : "not opened");
		fflush(stdout);
		_exit(!ok);
	}
	waitpid(child, &status, 0);
	if (WIFSIGNALED(status))
		printf("# signal %d\n", WTERMSIG(status));
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static unsigned count_damaged(const char *sent_directory, const int64_t *keep_ms)
{
	static unsigned first; /* before things, then after them */
	const unsigned step = deleting ? 3 * POINT_STEP : POINT_STEP;
	unsigned at = first++ % step, count = 0, wrong = 0;
	bool is_over = false;

	while (!is_over && at < 1000) {
		char command[256], directory[] = "/tmp/farflame-kill-XXXXXX";

		if (!mkdtemp(directory))
			return UINT32_MAX;
		snprintf(command, sizeof command, "cp -r %s/. %s", sent_directory, directory);
		if (system(command))
			return UINT32_MAX;
		at += step;
		count++;
		is_over = !kill_run(directory, keep_ms, at);
		if (!recovers(directory, keep_ms)) {
			printf("# killed at point %u: wrong\n", at);
			wrong++;
		}
		remove_directory(directory);
	}
	printf("# %u points\n", count);
	CHECK(is_over && at > (deleting ? 6 : 12));
	return wrong;
}

static void test_kill_points(void)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);

	sent_count = 0;
	sqlite_samples_of(store)->no_rollups = true;
	CHECK(store && send_all(store));
	samples_close(store);
	CHECK_NUMBER(count_damaged(directory, reduced_ms), 0);
	CHECK_NUMBER(count_damaged(directory, deleted_ms), 0);
	remove_directory(directory);
}

/* The same while rows go out of sums that cannot be made again, late ones among them. */
static void test_kill_points_of_deletion(const int64_t *keep_ms)
{
	const struct choice choice = {NULL, service_names[0], start_ms + 33 * minute_ms,
				      start_ms + 95 * minute_ms, false};
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);

	sent_count = 0;
	CHECK(store && send_all(store) && samples_fold(store, NULL));
	samples_close(store);
	store = open_keeping(directory, keep_ms[0], keep_ms[1], keep_ms[2]);
	CHECK(samples_fold(store, NULL) && samples_fold(store, NULL));
	sqlite_samples_of(store)->rollup_late_pause_ms = hour_ms;
	CHECK(late_reports(store, 37, 50000) && samples_fold(store, NULL));
	CHECK(late_reports(store, 37, 60000) && samples_fold(store, NULL));
	samples_close(store);
	forget(&choice, keep_ms[2] ? hour_ms : ROLLUP_BUCKET_MS);
	deleting = &choice;
	CHECK_NUMBER(count_damaged(directory, keep_ms), 0);
	deleting = NULL;
	remove_directory(directory);
}

int main(void)
{
	make_names();
	start_ms = (store_now_ms() / day_ms - 4) * day_ms + 11 * 3600000;
	test_equal_answers();
	test_late_samples();
	test_reduced_day();
	test_hours();
	test_wrong_clock();
	test_deletion();
	test_deletion_of_sums(reduced_ms);
	test_deletion_of_sums(deleted_ms);
	test_kill_points();
	test_kill_points_of_deletion(reduced_ms);
	test_kill_points_of_deletion(deleted_ms);
	return checks_done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A made-up fleet's four hours and what its sender knows of them, for the tests of roll-ups:
 * questions and their true answers, what a file has as another program reads it, deletion. */
#ifndef TESTS_UNIT_STORE_ROLLUP_WORLD_H
#define TESTS_UNIT_STORE_ROLLUP_WORLD_H

#include "tests/check.h"

#include <sys/wait.h>
#include <time.h>

#include "symbol-server/store/sqlite/days/hours.h"
#include "symbol-server/store/sqlite/rollups/rollup.h"
#include "tests/unit/store/batches.h"

#define KILL_AT_SQL(sql)     (strstr(sql, "COMMIT") || strstr(sql, "TRUNCATE"))
#define KILL_AT_RENAME(from) true
#include "tests/unit/store/kill_shims.h"

enum { HOSTS = 5, SERVICES = 3, MINUTES = 200, STEP = 7, STACKS = 12 };

/* Points at which processes are killed: every second one, before or after something, in deletion
 * every sixth; all of them take longer (-DPOINT_STEP=1). */
#ifndef POINT_STEP
#define POINT_STEP 2
#endif

static const int64_t minute_ms = 60000;
static int64_t start_ms; /* 11:00, four days before today */

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

/* One more point at which a process is killed. */
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

TEST void make_names(void)
{
	for (unsigned i = 0; i < HOSTS; i++)
		snprintf(host_names[i], sizeof host_names[i], "h%u", i);
	for (unsigned i = 0; i < SERVICES; i++)
		snprintf(service_names[i], sizeof service_names[i], "s%u", i);
	for (unsigned i = 0; i < 3; i++)
		snprintf(thread_names[i], sizeof thread_names[i], "t%u", i);
}

TEST unsigned next_random(unsigned below)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state % below);
}

TEST void fill_counters(struct batch_maker *maker, unsigned host, int64_t time_ms, uint64_t taken)
{
	static uint64_t taken_of[HOSTS], sequence[HOSTS];
	struct batch_counters *counters = &maker->batch.counters[maker->batch.counters_count++];

	memset(counters, 0, sizeof *counters);
	counters->agent_id[0] = (uint8_t)(host + 1);
	counters->host = text_from(host_names[host]);
	counters->agent_version = counters->kernel_release = text_from("1");
	counters->numbers.seq = ++sequence[host];
	counters->numbers.acknowledged = sequence[host] - 1;
	counters->numbers.taken = taken_of[host] += taken;
	counters->numbers.time_ms = time_ms;
	counters->numbers.received_ms = time_ms + 1;
}

/* One report of one host, all services, a few stacks of each. */
TEST bool send_report(struct samples_store *store, unsigned host, int64_t time_ms, uint32_t report)
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

TEST bool send_all(struct samples_store *store)
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

TEST bool has_label(const struct series_labels *labels, const char *name, const char *value)
{
	for (uint32_t i = 0; i < labels->count; i++)
		if (!strcmp(labels->names[i], name))
			return !strcmp(labels->values[i], value);
	return false;
}

TEST bool is_wanted(void *context, const struct series_labels *labels)
{
	const struct question *question = context;

	return (!question->host || has_label(labels, "host", question->host)) &&
	       (!question->service || has_label(labels, "service", question->service));
}

TEST bool is_thread_wanted(void *context, const char *thread)
{
	return !strcmp(thread, ((const struct question *)context)->thread);
}

struct answer {
	uint64_t samples, value, by_stack[STACKS], taken, stored;
	uint32_t hosts;
	int64_t from_ms, until_ms, resolution_ms;
};

TEST struct answer ask(struct samples_store *store, struct question question)
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
TEST struct answer tally(const struct question *question)
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

TEST bool same(const struct answer *a, const struct answer *b)
{
	return a->samples == b->samples && a->value == b->value && a->taken == b->taken &&
	       a->stored == b->stored && a->hosts == b->hosts &&
	       !memcmp(a->by_stack, b->by_stack, sizeof a->by_stack);
}

TEST bool is_right(struct samples_store *store, const struct question *question,
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
TEST unsigned count_wrong(struct samples_store *store, unsigned *rolled)
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

TEST uint64_t ask_file(const char *path, const char *sql)
{
	char command[1024];
	uint64_t number = UINT64_MAX;
	FILE *pipe;

	snprintf(command, sizeof command, "sqlite3 -readonly %s '%s'", path, sql);
	pipe = popen(command, "r");
	if (!pipe || fscanf(pipe, "%" SCNu64, &number) != 1)
		number = UINT64_MAX;
	if (pipe)
		pclose(pipe);
	return number;
}

TEST uint64_t ask_sqlite(const char *directory, const char *sql)
{
	char path[256];

	day_file_path(directory, (uint32_t)(start_ms / day_ms), path, sizeof path);
	return ask_file(path, sql);
}

TEST uint64_t ask_month(const char *directory, const char *sql)
{
	char path[256];

	month_file_path(directory, month_first((uint32_t)(start_ms / day_ms)), path, sizeof path);
	return ask_file(path, sql);
}

TEST uint64_t all_sent(void)
{
	uint64_t samples = 0;

	for (unsigned i = 0; i < sent_count; i++)
		samples += sent[i].is_deleted ? 0 : sent[i].samples;
	return samples;
}

/* ---- when only roll-ups are kept ---- */

TEST bool is_right_as_widened(struct samples_store *store, struct question question,
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

TEST unsigned count_wrong_as_widened(struct samples_store *store, int64_t step_ms)
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

TEST struct samples_store *open_keeping(const char *directory, int64_t raw_ms, int64_t rolled_ms,
					int64_t hours_ms)
{
	struct samples_store_options options = {.directory = directory,
						.keep_ms = {raw_ms, rolled_ms, hours_ms}};

	return samples_open(&options, NULL);
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

TEST bool is_chosen(void *context, const struct series_labels *labels)
{
	const struct choice *choice = context;

	return (!choice->host || has_label(labels, "host", choice->host)) &&
	       (!choice->service || has_label(labels, "service", choice->service));
}

TEST bool is_any_thread(void *context, const char *thread)
{
	(void)context;
	(void)thread;
	return true;
}

TEST bool delete (struct samples_store *store, const struct choice *choice,
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
TEST uint64_t forget(const struct choice *choice, int64_t step_ms)
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

TEST bool late_reports(struct samples_store *store, unsigned minute, unsigned number)
{
	bool ok = true;

	for (unsigned host = 0; host < HOSTS; host++)
		ok = ok && send_report(store, host, start_ms + minute * minute_ms, number + host);
	return ok;
}

TEST void make_world(void)
{
	make_names();
	start_ms = (store_now_ms() / day_ms - 4) * day_ms + 11 * 3600000;
}

#endif

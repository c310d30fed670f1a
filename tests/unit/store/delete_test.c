/* SPDX-License-Identifier: Apache-2.0 */
/* What is deleted is exactly what was asked for, wherever it was: memory, journal, files of several
 * days. The accounts say so, a restart brings nothing back, SIGKILL at any commit leaves sums that
 * are right and something that can be asked again. */
#include "tests/check.h"

#include <sys/wait.h>

#include "tests/unit/store/batches.h"
#include "tests/unit/store/kill_shims.h"

enum { HOSTS = 2, PROCESSES = 3, THREADS = 3, MINUTES = 4, DAYS = 2, EACH = 5, DAY_MS = 86400000 };

/* ---- the world: every host, process, thread, minute and day has EACH samples of two types ---- */

struct cell {
	unsigned day, minute, host, process, thread, type;
};

static const char *const types[] = {"on-cpu", "off-cpu"};

static int64_t time_of(const struct cell *cell)
{
	return noon + cell->day * (int64_t)DAY_MS + cell->minute * 60000ll;
}

static const char *name_of(const char *what, unsigned number)
{
	static char names[8][16];
	static unsigned next;
	char *name = names[next++ % 8];

	snprintf(name, 16, "%s%u", what, number);
	return name;
}

static bool add_minute(struct samples_store *store, unsigned day, unsigned minute)
{
	struct cell cell = {.day = day, .minute = minute};
	struct batch_maker maker;
	char text[HOSTS * PROCESSES][2][16];
	bool ok;

	batch_start(&maker);
	for (unsigned n = 0; n < HOSTS * PROCESSES; n++) {
		snprintf(text[n][0], 16, "h%u", n / PROCESSES);
		snprintf(text[n][1], 16, "p%u", n % PROCESSES);
		for (unsigned type = 0; type < 2; type++) {
			uint32_t series = batch_series(&maker, text[n][0], text[n][1]);

			batch_profile(&maker, series, time_of(&cell), 0, 0)->type = types[type];
			for (unsigned thread = 0; thread < THREADS; thread++) {
				batch_sample(&maker, batch_stack(&maker, n * 10 + thread, 4),
					     thread == 0   ? "t0"
					     : thread == 1 ? "t1"
							   : "t2",
					     EACH, EACH * 10);
				batch_link(&maker, n % 2 * 100 + thread % 2);
			}
		}
	}
	ok = add_and_wait(store, &maker, NULL, NULL);
	arena_release(&maker.arena);
	return ok;
}

static bool add_world(struct samples_store *store, bool with_fold)
{
	for (unsigned day = 0; day < DAYS; day++)
		for (unsigned minute = 0; minute < MINUTES; minute++)
			if (!add_minute(store, day, minute) ||
			    (with_fold && minute == 1 && !samples_fold(store, NULL)))
				return false;
	return true;
}

/* ---- what is deleted, and what the test knows of it ---- */

struct choice {
	const char *what, *host, *process, *thread, *type; /* NULL: any */
	int64_t from_ms, until_ms;
};

static bool labels_fit(void *context, const struct series_labels *labels)
{
	const struct choice *choice = context;
	bool fits = true;

	for (uint32_t i = 0; i < labels->count; i++) {
		if (!strcmp(labels->names[i], "host") && choice->host)
			fits &= !strcmp(labels->values[i], choice->host);
		if (!strcmp(labels->names[i], "process") && choice->process)
			fits &= !strcmp(labels->values[i], choice->process);
	}
	return fits;
}

static bool thread_fits(void *context, const char *thread)
{
	return !strcmp(((const struct choice *)context)->thread, thread);
}

static bool is_deleted(const struct choice *choice, const struct cell *cell)
{
	int64_t from = choice->from_ms / 60000 * 60000,
		until = (choice->until_ms + 59999) / 60000 * 60000;

	return (!choice->host || !strcmp(choice->host, name_of("h", cell->host))) &&
	       (!choice->process || !strcmp(choice->process, name_of("p", cell->process))) &&
	       (!choice->thread || !strcmp(choice->thread, name_of("t", cell->thread))) &&
	       (!choice->type || !strcmp(choice->type, types[cell->type])) &&
	       time_of(cell) >= from && time_of(cell) < until;
}

static bool delete (struct samples_store *store, const struct choice *choice, uint64_t *samples)
{
	struct samples_query query = {.tenant = 1,
				      .from_ms = choice->from_ms,
				      .until_ms = choice->until_ms,
				      .type = choice->type,
				      .series_wanted = labels_fit,
				      .thread_wanted = choice->thread ? thread_fits : NULL,
				      .context = (void *)choice};
	struct samples_deleted deleted;
	struct error err = {0};
	bool ok = samples_delete(store, &query, &deleted, &err);

	*samples = deleted.samples;
	if (!ok)
		printf("# %s\n", err.message);
	return ok;
}

static struct cell nth_cell(unsigned n)
{
	struct cell cell;

	cell.type = n % 2, n /= 2;
	cell.thread = n % THREADS, n /= THREADS;
	cell.process = n % PROCESSES, n /= PROCESSES;
	cell.host = n % HOSTS, n /= HOSTS;
	cell.minute = n % MINUTES, n /= MINUTES;
	cell.day = n;
	return cell;
}
enum { CELLS = 2 * THREADS * PROCESSES * HOSTS * MINUTES * DAYS };

/* What is answered, cell by cell; of all samples, or of those that are found by their requests: the
 * same ones here. */
static void read_cells(struct samples_store *store, bool by_span, uint64_t *shown)
{
	memset(shown, 0, CELLS * sizeof *shown);
	for (unsigned type = 0; type < 2; type++) {
		struct samples_query query = {.tenant = 1,
					      .from_ms = noon,
					      .until_ms = noon + DAYS * (int64_t)DAY_MS,
					      .type = types[type],
					      .by_thread = true,
					      .by_span = by_span,
					      .by_bucket = true};
		struct samples_result *result = samples_query(store, &query, NULL);

		for (size_t i = 0; result && i < result->stack_count; i++) {
			const struct result_stack *stack = &result->stacks[i];
			const struct series_labels *labels = &result->series[stack->series];
			int64_t after = stack->bucket_ms - noon;
			unsigned host = 0, process = 0;

			for (uint32_t k = 0; k < labels->count; k++)
				if (!strcmp(labels->names[k], "host"))
					host = (unsigned)(labels->values[k][1] - '0');
				else if (!strcmp(labels->names[k], "process"))
					process = (unsigned)(labels->values[k][1] - '0');
			shown[((((after / DAY_MS * MINUTES + after % DAY_MS / 60000) * HOSTS +
				 host) * PROCESSES +
				process) *
				       THREADS +
			       (unsigned)(stack->thread[1] - '0')) *
				      2 +
			      type] += stack->samples;
		}
		CHECK(result != NULL);
		samples_result_free(result);
	}
}

/* taken = samples + lost, of each type, and lost is what went. */
static bool accounts_close(struct samples_store *store, uint64_t all_of_type)
{
	bool ok = true;

	for (unsigned type = 0; type < 2; type++) {
		struct samples_query query = {.tenant = 1,
					      .from_ms = noon,
					      .until_ms = noon + DAYS * (int64_t)DAY_MS,
					      .type = types[type]};
		struct samples_result *result = samples_query(store, &query, NULL);
		uint64_t taken = 0, stored = 0, lost = 0, shown = 0;

		for (size_t i = 0; result && i < result->stack_count; i++)
			shown += result->stacks[i].samples;
		for (uint32_t i = 0; result && i < result->host_count; i++) {
			taken += result->hosts[i].taken;
			stored += result->hosts[i].samples;
			lost += result->hosts[i].lost;
			ok &= !result->hosts[i].lost_count ||
			      !strcmp(result->hosts[i].lost_by[0].reason, "deleted");
		}
		samples_result_free(result);
		ok &= result && taken == all_of_type && stored == shown && taken == stored + lost;
	}
	return ok;
}

static void check_cells(struct samples_store *store, const struct choice *choice, const char *when)
{
	uint64_t shown[CELLS];
	unsigned wrong = 0;

	for (unsigned by_span = 0; by_span < 2; by_span++) {
		read_cells(store, by_span, shown);
		for (unsigned n = 0; n < CELLS; n++) {
			struct cell cell = nth_cell(n);

			wrong += shown[n] != (is_deleted(choice, &cell) ? 0 : EACH);
		}
	}
	printf("# %s, %s\n", choice->what, when);
	CHECK_NUMBER(wrong, 0);
	CHECK(accounts_close(store, CELLS / 2 * EACH));
}

static uint64_t count_deleted(const struct choice *choice)
{
	uint64_t count = 0;

	for (unsigned n = 0; n < CELLS; n++) {
		struct cell cell = nth_cell(n);

		count += is_deleted(choice, &cell) ? EACH : 0;
	}
	return count;
}

#define ALWAYS noon, noon + DAYS *(int64_t)DAY_MS
static const struct choice choices[] = {
	{"one host", "h1", NULL, NULL, NULL, ALWAYS},
	{"one process", NULL, "p2", NULL, "off-cpu", ALWAYS},
	{"a thread", NULL, NULL, "t1", NULL, ALWAYS},
	{"a thread of a process", NULL, "p0", "t2", "on-cpu", ALWAYS},
	{"two minutes", NULL, NULL, NULL, NULL, noon + 61000, noon + 179000},
	{"a day", NULL, NULL, NULL, NULL, noon + DAY_MS - 1, noon + 2ll * DAY_MS},
	{"nothing", "h7", NULL, NULL, NULL, ALWAYS},
	{"all", NULL, NULL, NULL, NULL, ALWAYS},
};

static void test_choice(const struct choice *choice, bool with_fold)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	uint64_t samples;

	CHECK(add_world(store, with_fold));
	CHECK(delete (store, choice, &samples));
	CHECK_NUMBER(samples, count_deleted(choice));
	check_cells(store, choice, "at once");
	CHECK(delete (store, choice, &samples));
	CHECK_NUMBER(samples, 0);
	samples_close(store);
	store = open_store(directory, NULL);
	check_cells(store, choice, "after a restart");
	samples_close(store);
	remove_directory(directory);
}

/* What comes later is kept, also of the same series and minute. */
static void test_later(void)
{
	static const struct choice nothing = {"later", "h7", NULL, NULL, NULL, ALWAYS};
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	uint64_t samples, shown[CELLS], wrong = 0;

	CHECK(add_world(store, false));
	CHECK(delete (store, &choices[7], &samples));
	CHECK(add_world(store, true));
	read_cells(store, true, shown);
	for (unsigned n = 0; n < CELLS; n++)
		wrong += shown[n] != EACH;
	CHECK_NUMBER(wrong, 0);
	CHECK(accounts_close(store, CELLS * EACH)); /* taken twice, kept once */
	samples_close(store);
	store = open_store(directory, NULL);
	CHECK(accounts_close(store, CELLS * EACH));
	CHECK(delete (store, &nothing, &samples));
	samples_close(store);
	remove_directory(directory);
}

/* ---- SIGKILL ---- */

static bool killed_at(const char *directory, const struct choice *choice, unsigned point)
{
	pid_t child = fork();
	int status;

	if (!child) {
		struct samples_store *store = open_store(directory, NULL);
		uint64_t samples;
		bool ok = store;

		points = 0;
		kill_at = point;
		ok = ok && delete (store, choice, &samples);
		_exit(!ok);
	}
	waitpid(child, &status, 0);
	CHECK(WIFSIGNALED(status) || !WEXITSTATUS(status));
	return WIFSIGNALED(status);
}

/* Every POINT_STEPth commit; another set for each choice. All of them take two minutes
 * (-DPOINT_STEP=1). */
#ifndef POINT_STEP
#define POINT_STEP 5
#endif

static void test_kill(const struct choice *choice)
{
	static unsigned first;
	bool was_killed = true;
	unsigned point, count = 0;

	for (point = 1 + first++ % POINT_STEP; was_killed && point < 100; point += POINT_STEP) {
		const char *directory = make_directory();
		struct samples_store *store = open_store(directory, NULL);
		uint64_t samples;

		CHECK(add_world(store, point % 2));
		samples_close(store);
		was_killed = killed_at(directory, choice, point);
		store = open_store(directory, NULL);
		CHECK(accounts_close(store, CELLS / 2 * EACH));
		CHECK(delete (store, choice, &samples));
		check_cells(store, choice, "asked again after SIGKILL");
		samples_close(store);
		remove_directory(directory);
		count += was_killed;
	}
	printf("# %u points\n", count);
	CHECK(count > 2 && point < 100);
}

/* ---- what cannot be read ---- */

/* Each time another statement fails, until all did: never taken for the end of the rows. */
static void test_errors(const struct choice *choice)
{
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);
	uint64_t samples;
	unsigned before;
	bool ok;

	CHECK(add_world(store, true));
	failed_count = 0;
	do {
		before = failed_count;
		fails_reads = true;
		ok = delete (store, choice, &samples);
		fails_reads = false;
		if (failed_count > before)
			printf("# failed: %s\n", failed_sql[before]);
		CHECK(ok == (failed_count == before));
	} while (failed_count > before);
	CHECK(failed_count > 4);
	check_cells(store, choice, "after reads failed");
	samples_close(store);
	remove_directory(directory);
}

int main(void)
{
	for (unsigned i = 0; i < sizeof choices / sizeof *choices; i++) {
		test_choice(&choices[i], false);
		test_choice(&choices[i], true);
	}
	test_later();
	test_kill(&choices[0]);
	test_kill(&choices[2]);
	test_errors(&choices[0]);
	test_errors(&choices[2]);
	return checks_done();
}

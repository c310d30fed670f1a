/* SPDX-License-Identifier: Apache-2.0 */
/* Time lines of the store, beside a tally that the test keeps while it adds: by host, process and
 * minute. */
#include "tests/check.h"

#include "symbol-server/store/sqlite/samples_store.h"
#include "tests/unit/store/batches.h"

enum { HOSTS = 3, PROCESSES = 2, MINUTES = 130 };

static const int64_t minute = 60000;
static const int64_t day = 86400000;
static uint64_t tally[HOSTS][PROCESSES][MINUTES]; /* samples of 10 ms */
static int64_t start_ms; /* an hour before the end of a day: the range has two */

static void add_some(struct samples_store *store)
{
	uint32_t report = 1;

	for (int at = 0; at < MINUTES; at += 7)
		for (int host = 0; host < HOSTS; host++)
			for (int process = 0; process < PROCESSES; process++) {
				uint32_t count = (uint32_t)(1 + (at + host * 5 + process * 3) % 6);
				char host_text[16], process_text[16];

				snprintf(host_text, sizeof host_text, "h%d", host);
				snprintf(process_text, sizeof process_text, "p%d", process);
				tally[host][process][at] += count;
				add_report(store, host_text, process_text, start_ms + at * minute,
					   report++, (uint32_t)(at % 4), count);
			}
}

static const char *label(const struct series_labels *labels, const char *name)
{
	for (uint32_t i = 0; i < labels->count; i++)
		if (!strcmp(labels->names[i], name))
			return labels->values[i];
	return "";
}

static bool is_h1(void *context, const struct series_labels *labels)
{
	(void)context;
	return !strcmp(label(labels, "host"), "h1");
}

/* -1: all */
static uint64_t wanted(int host, int process, int64_t from, int64_t until)
{
	uint64_t sum = 0;

	for (int h = 0; h < HOSTS; h++)
		for (int p = 0; p < PROCESSES; p++)
			for (int64_t at = from; at < until; at++)
				if ((host < 0 || h == host) && (process < 0 || p == process) &&
				    at >= 0 && at < MINUTES)
					sum += tally[h][p][at];
	return sum;
}

static void check_line(struct samples_store *store, const char *const *labels, unsigned count,
		       int64_t step_ms, bool only_h1)
{
	struct samples_query query = {.tenant = 1,
				      .from_ms = start_ms,
				      .until_ms = start_ms + MINUTES * minute,
				      .type = "on-cpu",
				      .labels = labels,
				      .label_count = count,
				      .series_wanted = only_h1 ? is_h1 : NULL,
				      .step_ms = step_ms};
	struct error err = {0};
	struct samples_timeline *line = samples_timeline(store, &query, &err);
	uint64_t samples = 0;
	bool equal = true, ordered = true;

	if (!CHECK(line)) {
		printf("# %s\n", err.message);
		return;
	}
	CHECK_NUMBER(line->step_ms, step_ms ? step_ms : minute);
	CHECK_NUMBER(line->from_ms, start_ms);
	for (size_t i = 0; i < line->point_count; i++) {
		const struct timeline_point *point = &line->points[i];
		const struct series_labels *of = &line->series[point->series];
		const char *host = label(of, "host"), *process = label(of, "process");
		int64_t at = (point->time_ms - start_ms) / minute;
		uint64_t want = wanted(only_h1 ? 1
				       : *host ? host[1] - '0'
					       : -1,
				       *process ? process[1] - '0' : -1, at,
				       at + line->step_ms / minute);

		equal &= point->samples == want && point->value == want * 10000000;
		ordered &= !i || point[-1].series < point->series ||
			   (point[-1].series == point->series &&
			    point[-1].time_ms < point->time_ms);
		samples += point->samples;
		equal &= !labels || of->count == count;
	}
	CHECK(equal);
	CHECK(ordered);
	CHECK_NUMBER(samples, wanted(only_h1 ? 1 : -1, -1, 0, MINUTES));
	CHECK_NUMBER(line->host_count, only_h1 ? 1 : HOSTS);
	samples = 0;
	for (uint32_t i = 0; i < line->host_count; i++)
		samples += line->hosts[i].samples;
	CHECK_NUMBER(samples, wanted(only_h1 ? 1 : -1, -1, 0, MINUTES));
	samples_timeline_free(line);
}

static void check_refusals(struct samples_store *store)
{
	struct samples_query query = {
		.tenant = 1, .until_ms = noon, .type = "on-cpu", .by_thread = true};
	struct error err = {0};

	CHECK(!samples_timeline(store, &query, &err));
	CHECK(err.kind == ERROR_OPTION);
	query.by_thread = false;
	query.step_ms = 1000;
	CHECK(!samples_timeline(store, &query, &err));
	query.step_ms = 0;
	query.type = "nonsense";
	CHECK(!samples_timeline(store, &query, &err));
	query.type = "on-cpu";
	query.from_ms = start_ms;
	query.until_ms = start_ms + day;
	query.limits.rows = 3;
	err = (struct error){0};
	CHECK(!samples_timeline(store, &query, &err));
	CHECK(err.kind == ERROR_LIMIT);
	CHECK(strstr(err.message, "--query-rows"));
}

int main(void)
{
	static const char *const host[] = {"host"}, *const both[] = {"process", "host"};
	const char *directory = make_directory();
	struct samples_store *store = open_store(directory, NULL);

	start_ms = noon / day * day + day - 60 * minute;
	CHECK(store);
	add_some(store);
	for (int folded = 0; folded < 2; folded++) {
		check_line(store, host, 0, 0, false);
		check_line(store, host, 1, 10 * minute, false);
		check_line(store, both, 2, 0, false);
		check_line(store, NULL, 0, 60 * minute, false);
		check_line(store, both, 1, 5 * minute, true);
		CHECK(samples_fold(store, NULL));
	}
	check_refusals(store);
	samples_close(store);
	remove_directory(directory);
	return checks_done();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/nothing.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "symbol-server/store/sample_context.h"

enum {
	LOOK_MS = 2000, /* each question */
	LOOK_BYTES = 64 << 20,
	KNOWN_SHOWN = 12,
	KNOWN_BYTES = 1024,
};

static const int64_t hour_ms = 3600000, day_ms = 86400000;

/* What senders usually have; a label of that name is no mistake where nobody has it. */
static bool is_usual(const char *label)
{
	static const char *const usual[] = {"host", "process",   "service",
					    "pod",  "container", "namespace"};

	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
		if (!strcmp(label, usual[i]))
			return true;
	return sample_context_has_name(label) || !strcmp(label, "trace_id") ||
	       !strcmp(label, "span_id");
}

struct search {
	struct api *api;
	struct query_life *life;
	struct arena *arena;
	const struct query *asked;
	int64_t oldest_ms, now_ms;
};

/* False: there is no data at all. */
static bool search_open(struct search *search, struct api *api, struct query_life *life,
			const struct query *asked)
{
	struct samples_counters counters;

	samples_counters(api->samples, &counters);
	*search = (struct search){.api = api,
				  .life = life,
				  .arena = http_request_arena(query_life_request(life)),
				  .asked = asked,
				  .oldest_ms = counters.oldest_ms,
				  .now_ms = unix_time_ms()};
	return counters.oldest_ms && counters.oldest_ms < search->now_ms;
}

/* One question more of the same request: of everything that is kept, or of the last day. */
static void ask_all(const struct search *search, struct query *query, bool lately)
{
	memset(query, 0, sizeof *query);
	query_life_lend(search->life, query);
	query->limits = (struct samples_limits){.time_ms = LOOK_MS, .bytes = LOOK_BYTES};
	query->tenant = search->asked->tenant;
	query->from_ms = search->oldest_ms;
	query->until_ms = search->now_ms + hour_ms;
	if (lately && query->from_ms < search->now_ms - day_ms)
		query->from_ms = search->now_ms - day_ms;
}

/* Whether some series has it; where that could not be seen, it is taken for known. */
static bool has_values(const struct search *search, const struct selector_matcher *matcher)
{
	struct samples_query wanted;
	struct value_count *rows;
	struct query query;
	size_t count = 0;

	ask_all(search, &query, false);
	query.selector.matchers[0] = *matcher;
	query.selector.count = 1;
	query.groups[query.group_count++] = matcher->name;
	query_to_samples(&query, &wanted);
	return !samples_label_values(search->api->samples, &wanted, matcher->name, search->arena,
				     &rows, &count, NULL) ||
	       count;
}

static bool has_label(const struct search *search, const char *label)
{
	return is_usual(label) ||
	       has_values(search, &(struct selector_matcher){label, "", MATCH_NOT_EQUAL, NULL});
}

struct known { /* "a, b, c and 7 more" */
	char text[KNOWN_BYTES];
	size_t length;
	unsigned shown, more;
};

static void add_known(struct known *known, const char *name)
{
	size_t length = strlen(name);

	if (!length)
		return;
	if (known->shown == KNOWN_SHOWN || known->length + length + 32 > sizeof known->text) {
		known->more++;
		return;
	}
	known->length += (size_t)snprintf(known->text + known->length,
					  sizeof known->text - known->length, "%s%s",
					  known->shown++ ? ", " : "", name);
}

static const char *end_known(struct known *known, const char *none)
{
	if (known->more)
		snprintf(known->text + known->length, sizeof known->text - known->length,
			 " and %u more", known->more);
	return known->shown ? known->text : none;
}

static const char *selector_is(const struct query *query)
{
	return query->selector_is ? query->selector_is : "match";
}

static bool no_such_value(const struct search *search, const struct selector_matcher *matcher,
			  struct error *err)
{
	struct samples_query wanted;
	struct value_count *rows = NULL;
	struct known known = {.text = ""};
	struct query query;
	size_t count = 0;

	ask_all(search, &query, true);
	query.groups[query.group_count++] = matcher->name;
	query_to_samples(&query, &wanted);
	if (samples_label_values(search->api->samples, &wanted, matcher->name, search->arena, &rows,
				 &count, NULL))
		for (size_t i = 0; i < count; i++)
			add_known(&known, rows[i].value);
	return error_set(err, ERROR_NOT_FOUND,
			 "parameter '%s': no such %s as '%.60s'; known are: %s",
			 selector_is(search->asked), matcher->name, matcher->value,
			 end_known(&known, "none of the last day"));
}

static bool no_such_label(const struct search *search, const char *parameter, const char *label,
			  struct error *err)
{
	struct samples_query wanted;
	struct label_count *rows = NULL;
	struct known known = {.text = ""};
	struct query query;
	size_t count = 0;

	ask_all(search, &query, true);
	query.all_labels = true;
	query_to_samples(&query, &wanted);
	if (samples_labels(search->api->samples, &wanted, search->arena, &rows, &count, NULL))
		for (size_t i = 0; i < count; i++)
			add_known(&known, rows[i].name);
	return error_set(err, ERROR_NOT_FOUND,
			 "parameter '%s': no such label as '%.60s'; known are: %s", parameter,
			 label, end_known(&known, "none of the last day"));
}

static bool check_selector(const struct search *search, struct error *err)
{
	const struct selector *selector = &search->asked->selector;

	for (unsigned i = 0; i < selector->count; i++) {
		const struct selector_matcher *matcher = &selector->matchers[i];

		if (sample_context_has_name(matcher->name) || !selector_is_of_series(matcher))
			continue;
		if (!has_label(search, matcher->name))
			return no_such_label(search, selector_is(search->asked), matcher->name,
					     err);
		if (matcher->op == MATCH_EQUAL && *matcher->value && !has_values(search, matcher))
			return no_such_value(search, matcher, err);
	}
	return true;
}

/* "" where the agent has no option of that name. */
static const char *option_of(const char *type)
{
	static const char *const by_agent[] = {"on-cpu",    "off-cpu",       "waker",
					       "run-queue", "still-blocked", "mem-alloc",
					       "mem-inuse", "page-fault"};

	for (size_t i = 0; i < sizeof by_agent / sizeof *by_agent; i++)
		if (!strcmp(type, by_agent[i]))
			return type;
	return "";
}

/* NULL: it is recorded, or that could not be seen. */
static const char *type_sentence(const struct search *search)
{
	const char *type = search->asked->type, *option = option_of(type);
	struct samples_query wanted;
	struct type_count *rows = NULL;
	struct known known = {.text = ""};
	struct query query;
	char text[KNOWN_BYTES + 400], how[200] = "";
	size_t count = 0;

	ask_all(search, &query, false);
	query.type = type;
	query_to_samples(&query, &wanted);
	if (!samples_types(search->api->samples, &wanted, search->arena, &rows, &count, NULL) ||
	    count)
		return NULL;
	ask_all(search, &query, true);
	query_to_samples(&query, &wanted);
	if (samples_types(search->api->samples, &wanted, search->arena, &rows, &count, NULL))
		for (size_t i = 0; i < count; i++)
			add_known(&known, rows[i].type);
	if (*option)
		snprintf(how, sizeof how, "; farflame-agent takes it with --profile %s%s",
			 strcmp(option, "on-cpu") ? "on-cpu," : "", option);
	snprintf(text, sizeof text, "no %s was ever recorded here; recorded are: %s%s", type,
		 end_known(&known, "none of the last day"), how);
	return arena_text(search->arena, text, strlen(text));
}

/* The values of a label of samples in the time that was asked for, chosen by the matcher where
 * there is one. False: that could not be seen. */
static bool values_then(const struct search *search, const char *label,
			const struct selector_matcher *matcher, struct value_count **rows,
			size_t *count)
{
	struct samples_query wanted;
	struct query query;

	ask_all(search, &query, false);
	query.from_ms = search->asked->from_ms;
	query.until_ms = search->asked->until_ms;
	query.selector.count = matcher != NULL;
	if (matcher)
		query.selector.matchers[0] = *matcher;
	query.groups[query.group_count++] = label;
	query_to_samples(&query, &wanted);
	return samples_label_values(search->api->samples, &wanted, label, search->arena, rows,
				    count, NULL);
}

/* Of labels of samples it is known of that time alone what there is. NULL: no such matcher is to
 * blame, there are none at all, or that could not be seen. */
static const char *sample_sentence(const struct search *search)
{
	const struct selector *selector = &search->asked->selector;
	struct known known = {.text = ""};
	char text[KNOWN_BYTES + 400];
	struct value_count *rows = NULL;
	size_t count = 0;

	for (unsigned i = 0; i < selector->count; i++) {
		const struct selector_matcher *matcher = &selector->matchers[i];

		if (matcher->op != MATCH_EQUAL || !*matcher->value ||
		    !sample_context_has_name(matcher->name) ||
		    !values_then(search, matcher->name, matcher, &rows, &count) || count)
			continue;
		if (!values_then(search, matcher->name, NULL, &rows, &count) || !count)
			continue;
		for (size_t k = 0; k < count; k++)
			add_known(&known, rows[k].value);
		snprintf(text, sizeof text,
			 "no sample of this time has the %s '%.60s'; there are: %s", matcher->name,
			 matcher->value, end_known(&known, "others"));
		return arena_text(search->arena, text, strlen(text));
	}
	return NULL;
}

/* The first and the last time with samples, in steps of step_ms. */
static bool find_times(const struct search *search, int64_t from_ms, int64_t until_ms,
		       int64_t step_ms, int64_t *first_ms, int64_t *last_ms)
{
	struct samples_timeline *line;
	struct samples_query wanted;
	struct query query;

	ask_all(search, &query, false);
	query.type = search->asked->type;
	query.from_ms = from_ms;
	query.until_ms = until_ms;
	query.selector = search->asked->selector; /* borrowed */
	query.step_ms = step_ms;
	query_to_samples(&query, &wanted);
	if (wanted.thread_wanted || wanted.trace_id || wanted.span_id)
		return false; /* a time line of sums tells none apart */
	line = samples_timeline(search->api->samples, &wanted, NULL);
	*first_ms = INT64_MAX;
	*last_ms = 0;
	for (size_t i = 0; line && i < line->point_count; i++) {
		int64_t time_ms = line->points[i].time_ms;

		*first_ms = time_ms < *first_ms ? time_ms : *first_ms;
		*last_ms = time_ms > *last_ms ? time_ms : *last_ms;
	}
	samples_timeline_free(line);
	return *last_ms;
}

/* To the hour by sums, then to the minute within these hours. */
static void find_data(const struct search *search, struct nothing *out)
{
	int64_t first, last, unused;

	if (!find_times(search, search->oldest_ms, search->now_ms + hour_ms, hour_ms, &first,
			&last))
		return;
	out->from_ms = first;
	out->until_ms = last + hour_ms;
	if (find_times(search, first, first + hour_ms, SAMPLES_BUCKET_MS, &first, &unused))
		out->from_ms = first;
	if (find_times(search, last, last + hour_ms, SAMPLES_BUCKET_MS, &unused, &last))
		out->until_ms = last + SAMPLES_BUCKET_MS;
}

bool nothing_explain(struct api *api, struct query_life *life, const struct query *asked,
		     struct nothing *out, struct error *err)
{
	struct search search;

	*out = (struct nothing){0};
	if (!search_open(&search, api, life, asked))
		return true;
	if (!check_selector(&search, err))
		return false;
	out->sentence = type_sentence(&search);
	if (!out->sentence)
		out->sentence = sample_sentence(&search);
	if (!out->sentence)
		find_data(&search, out);
	return true;
}

static bool has_group(const struct series_labels *series, uint32_t count, const char *label)
{
	for (uint32_t i = 0; i < count; i++)
		if (*series_label(&series[i], label))
			return true;
	return false;
}

bool nothing_check_groups(struct api *api, struct query_life *life, const struct query *asked,
			  const struct series_labels *series, uint32_t count, struct error *err)
{
	struct search search;

	for (unsigned i = 0; i < asked->group_count; i++) {
		const char *label = asked->groups[i];

		if (is_usual(label) || has_group(series, count, label) ||
		    !search_open(&search, api, life, asked))
			continue;
		if (!has_label(&search, label))
			return no_such_label(&search, "group_by", label, err);
	}
	return true;
}

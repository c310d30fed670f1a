/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/series_choice.h"

#include <stdlib.h>
#include <string.h>

enum verdict { NOT_ASKED, WANTED, NOT_WANTED };

struct choice {
	const struct catalog *catalog;
	const struct samples_query *query;
	uint32_t first, count, strings;
	uint8_t *is_wanted;
	uint8_t *values; /* what the chooser at hand says of each string */
	uint8_t *names;  /* whether a string is the label that it looks at */
	struct limit_watch *watch;
	struct error *err;
};

static bool goes_on(const struct choice *choice)
{
	return !choice->watch || limit_watch_goes_on(choice->watch, choice->err);
}

static bool asks_series(const struct choice *choice, const struct catalog_series *series)
{
	const char *names[SAMPLES_LABELS_MAX], *values[SAMPLES_LABELS_MAX];
	struct series_labels labels = {names, values, series->label_count};

	for (uint32_t i = 0; i < series->label_count; i++) {
		names[i] = catalog_string(choice->catalog, series->labels[2 * i])->text;
		values[i] = catalog_string(choice->catalog, series->labels[2 * i + 1])->text;
	}
	return choice->query->series_wanted(choice->query->context, &labels);
}

static bool is_label(const struct choice *choice, const char *label, uint32_t name)
{
	uint8_t *known = &choice->names[name];

	if (!*known)
		*known = strcmp(catalog_string(choice->catalog, name)->text, label) ? NOT_WANTED
										    : WANTED;
	return *known == WANTED;
}

/* 0: the empty string. */
static uint32_t value_of(const struct choice *choice, const struct catalog_series *series,
			 const char *label)
{
	for (uint32_t i = 0; i < series->label_count; i++)
		if (is_label(choice, label, series->labels[2 * i]))
			return series->labels[2 * i + 1];
	return 0;
}

static bool is_value_wanted(const struct choice *choice, unsigned chooser, uint32_t value)
{
	const struct samples_query *query = choice->query;
	uint8_t *known = &choice->values[value];

	if (!*known) {
		const char *text = value ? catalog_string(choice->catalog, value)->text : "";

		*known = query->value_wanted(query->context, chooser, text) ? WANTED : NOT_WANTED;
	}
	return *known == WANTED;
}

static bool ask_chooser(const struct choice *choice, unsigned chooser)
{
	const char *label = choice->query->choosers[chooser];

	memset(choice->names, 0, choice->strings);
	memset(choice->values, 0, choice->strings);
	for (uint32_t n = choice->first; n < choice->count; n++) {
		const struct catalog_series *series = catalog_series(choice->catalog, n);

		if (!goes_on(choice))
			return false;
		if (choice->is_wanted[n] &&
		    !is_value_wanted(choice, chooser, value_of(choice, series, label)))
			choice->is_wanted[n] = 0;
	}
	return true;
}

static bool ask_all(const struct choice *choice)
{
	const struct samples_query *query = choice->query;

	for (uint32_t n = choice->first; n < choice->count; n++) {
		const struct catalog_series *series = catalog_series(choice->catalog, n);

		if (!goes_on(choice))
			return false;
		choice->is_wanted[n] = series->tenant == query->tenant &&
				       (!query->series_wanted || query->chooser_count ||
					asks_series(choice, series));
	}
	for (unsigned i = 0; i < query->chooser_count; i++)
		if (!ask_chooser(choice, i))
			return false;
	return true;
}

bool series_choose(const struct catalog *catalog, const struct catalog_mark *mark, uint32_t first,
		   const struct samples_query *query, uint8_t *is_wanted, struct limit_watch *watch,
		   struct error *err)
{
	struct choice choice = {
		.catalog = catalog,
		.query = query,
		.first = first,
		.count = mark->count[CATALOG_SERIES],
		.strings = mark->count[CATALOG_STRINGS],
		.is_wanted = is_wanted,
		.watch = watch,
		.err = err,
	};
	bool ok;

	choice.values = calloc((size_t)choice.strings + 1, 1);
	choice.names = calloc((size_t)choice.strings + 1, 1);
	ok = choice.values && choice.names ? ask_all(&choice)
					   : error_set(err, ERROR_MEMORY,
						       "no memory for an "
						       "answer");
	free(choice.values);
	free(choice.names);
	return ok;
}

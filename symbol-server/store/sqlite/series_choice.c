/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/series_choice.h"

#include <stdlib.h>
#include <string.h>

enum verdict { NOT_ASKED, WANTED, NOT_WANTED };

struct choosing {
	const struct catalog *catalog;
	const struct samples_query *query;
	uint32_t first, count, strings;
	uint8_t *is_wanted;
	uint8_t *values; /* what the chooser at hand says of each string */
	uint8_t *names;  /* whether a string is the label that it looks at */
	struct limit_watch *watch;
	struct error *err;
};

static bool goes_on(const struct choosing *choosing)
{
	return !choosing->watch || limit_watch_goes_on(choosing->watch, choosing->err);
}

static bool asks_series(const struct choosing *choosing, const struct catalog_series *series)
{
	const char *names[SAMPLES_LABELS_MAX], *values[SAMPLES_LABELS_MAX];
	struct series_labels labels = {names, values, series->label_count};

	for (uint32_t i = 0; i < series->label_count; i++) {
		names[i] = catalog_string(choosing->catalog, series->labels[2 * i])->text;
		values[i] = catalog_string(choosing->catalog, series->labels[2 * i + 1])->text;
	}
	return choosing->query->series_wanted(choosing->query->context, &labels);
}

static bool is_label(const struct choosing *choosing, const char *label, uint32_t name)
{
	uint8_t *known = &choosing->names[name];

	if (!*known)
		*known = strcmp(catalog_string(choosing->catalog, name)->text, label) ? NOT_WANTED
										      : WANTED;
	return *known == WANTED;
}

/* 0: the empty string. */
static uint32_t value_of(const struct choosing *choosing, const struct catalog_series *series,
			 const char *label)
{
	for (uint32_t i = 0; i < series->label_count; i++)
		if (is_label(choosing, label, series->labels[2 * i]))
			return series->labels[2 * i + 1];
	return 0;
}

static bool is_value_wanted(const struct choosing *choosing, unsigned chooser, uint32_t value)
{
	const struct samples_query *query = choosing->query;
	uint8_t *known = &choosing->values[value];

	if (!*known) {
		const char *text = value ? catalog_string(choosing->catalog, value)->text : "";

		*known = query->value_wanted(query->context, chooser, text) ? WANTED : NOT_WANTED;
	}
	return *known == WANTED;
}

static bool ask_chooser(const struct choosing *choosing, unsigned chooser)
{
	const char *label = choosing->query->choosers[chooser];

	memset(choosing->names, 0, choosing->strings);
	memset(choosing->values, 0, choosing->strings);
	for (uint32_t n = choosing->first; n < choosing->count; n++) {
		const struct catalog_series *series = catalog_series(choosing->catalog, n);

		if (!goes_on(choosing))
			return false;
		if (choosing->is_wanted[n] &&
		    !is_value_wanted(choosing, chooser, value_of(choosing, series, label)))
			choosing->is_wanted[n] = 0;
	}
	return true;
}

static bool ask_all(const struct choosing *choosing)
{
	const struct samples_query *query = choosing->query;

	for (uint32_t n = choosing->first; n < choosing->count; n++) {
		const struct catalog_series *series = catalog_series(choosing->catalog, n);

		if (!goes_on(choosing))
			return false;
		choosing->is_wanted[n] = series->tenant == query->tenant &&
					 (!query->series_wanted || query->chooser_count ||
					  asks_series(choosing, series));
	}
	for (unsigned i = 0; i < query->chooser_count; i++)
		if (!ask_chooser(choosing, i))
			return false;
	return true;
}

bool series_choose(const struct catalog *catalog, const struct catalog_mark *mark, uint32_t first,
		   const struct samples_query *query, uint8_t *is_wanted, struct limit_watch *watch,
		   struct error *err)
{
	struct choosing choosing = {
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

	choosing.values = calloc((size_t)choosing.strings + 1, 1);
	choosing.names = calloc((size_t)choosing.strings + 1, 1);
	ok = choosing.values && choosing.names ? ask_all(&choosing)
					       : error_set(err, ERROR_MEMORY,
							   "no memory for an "
							   "answer");
	free(choosing.values);
	free(choosing.names);
	return ok;
}

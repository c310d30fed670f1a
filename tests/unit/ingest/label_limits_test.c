/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes that become labels: a day has room for so many names and values of them; series that
 * carry no profile take none of it, and a request that comes late at midnight forgets nothing. */
#include "symbol-server/ingest/label_limits.h"

#include "tests/check.h"

enum { DAY = 86400000 };

static struct batch_label labels[LIMITED_NAMES_MAX + 64];
static char names[LIMITED_NAMES_MAX + 64][16];

static struct text text(const char *at)
{
	return (struct text){at, (uint32_t)strlen(at)};
}

/* One series with count labels from first; true: all of them stayed. */
static bool stay(struct label_limits *limits, unsigned first, unsigned count, bool has_profile,
		 int64_t now_ms)
{
	struct batch_series series = {.labels = labels, .label_count = count};
	struct batch_profile profile = {.series = 0};
	struct sample_batch batch = {.series = &series, .series_count = 1};

	for (unsigned i = 0; i < count; i++)
		labels[i] = (struct batch_label){text(names[first + i]), text("value"), true};
	batch.profiles = &profile;
	batch.profile_count = has_profile;
	return !label_limits_apply(limits, &batch, now_ms) && series.label_count == count;
}

int main(void)
{
	struct error err;
	struct label_limits *limits = label_limits_new(&err);

	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		snprintf(names[i], sizeof names[i], "name_%u", i);
	CHECK(limits != NULL);
	if (!limits)
		return checks_done();
	CHECK(stay(limits, 0, LIMITED_NAMES_MAX, false, 10 * DAY)); /* nobody's */
	CHECK(stay(limits, 16, LIMITED_NAMES_MAX - 1, true, 10 * DAY));
	CHECK(stay(limits, 8, 1, true, 10 * DAY));
	CHECK(!stay(limits, 9, 1, true, 10 * DAY)); /* the day is full */
	CHECK(stay(limits, 8, 1, true, 10 * DAY));  /* known */
	CHECK(stay(limits, 0, LIMITED_NAMES_MAX, true, 11 * DAY));
	CHECK(!stay(limits, LIMITED_NAMES_MAX, 1, true, 10 * DAY + DAY - 1)); /* late */
	CHECK(!stay(limits, LIMITED_NAMES_MAX, 1, true, 11 * DAY));
	CHECK(stay(limits, LIMITED_NAMES_MAX, 1, true, 5 * DAY)); /* the clock was wrong */
	label_limits_free(limits);
	return checks_done();
}

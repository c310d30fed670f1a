/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/formats/human.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "symbol-server/flamegraph/sampling_error.h"

struct scale {
	double size;
	const char *unit;
};

static int digits_of(double number)
{
	return number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2;
}

/* The largest unit that the value has at least one of; the last one for all that is smaller. */
static void scaled(uint64_t value, const struct scale *scales, size_t count, char text[HUMAN_TEXT])
{
	size_t i = 0;
	double number;

	while (i + 1 < count && (double)value < scales[i].size)
		i++;
	number = (double)value / scales[i].size;
	if (scales[i].size == 1)
		snprintf(text, HUMAN_TEXT, "%" PRIu64 " %s", value, scales[i].unit);
	else
		snprintf(text, HUMAN_TEXT, "%.*f %s", digits_of(number), number, scales[i].unit);
}

void human_value(uint64_t value, const char *unit, char text[HUMAN_TEXT])
{
	static const struct scale times[] = {{86400e9, "d"}, {3600e9, "h"}, {60e9, "min"},
					     {1e9, "s"},     {1e6, "ms"},   {1e3, "µs"},
					     {1, "ns"}};
	static const struct scale sizes[] = {
		{1125899906842624.0, "PiB"}, {1099511627776.0, "TiB"}, {1073741824.0, "GiB"},
		{1048576.0, "MiB"},          {1024.0, "KiB"},          {1, "B"},
	};

	if (!strcmp(unit, "nanoseconds"))
		scaled(value, times, sizeof(times) / sizeof(*times), text);
	else if (!strcmp(unit, "bytes"))
		scaled(value, sizes, sizeof(sizes) / sizeof(*sizes), text);
	else
		snprintf(text, HUMAN_TEXT, "%" PRIu64, value);
}

void human_share(uint64_t part, uint64_t whole, char text[HUMAN_TEXT])
{
	double percent = whole ? 100.0 * (double)part / (double)whole : 0;

	if (!part || !whole)
		snprintf(text, HUMAN_TEXT, "0 %%");
	else if (percent < 0.01)
		snprintf(text, HUMAN_TEXT, "< 0.01 %%");
	else if (percent > 99.99 && part < whole)
		snprintf(text, HUMAN_TEXT, "> 99.99 %%");
	else if (percent >= 99.95)
		snprintf(text, HUMAN_TEXT, part < whole ? "99.9 %%" : "100 %%");
	else
		snprintf(text, HUMAN_TEXT, "%.*f %%", percent >= 9.995 ? 1 : 2, percent);
}

void human_sampled_value(uint64_t value, uint64_t error, const char *unit, bool is_sampled,
			 char text[HUMAN_TEXT])
{
	char off[HUMAN_TEXT];
	size_t length;

	human_value(value, unit, text);
	if (!is_sampled || !value)
		return;
	human_value(error, unit, off);
	length = strlen(text);
	snprintf(text + length, HUMAN_TEXT - length, " ± %s", off);
}

void human_sampled_share(uint64_t part, double squares, const struct human_whole *whole,
			 char text[HUMAN_TEXT])
{
	double share = whole->value ? (double)part / (double)whole->value : 0;
	double own = (double)sampling_error(part, squares), all = (double)whole->error, off, tens;
	int digits = share >= 0.09995 ? 1 : 2;
	size_t length;

	human_share(part, whole->value, text);
	if (!whole->is_sampled || !isdigit((unsigned char)*text) || share <= 0 || share >= 1)
		return;
	off = 100 * sqrt(fmax(0, own * own * (1 - 2 * share) + share * share * all * all)) /
	      (double)whole->value;
	tens = digits == 1 ? 10 : 100;
	length = strlen(text);
	snprintf(text + length, HUMAN_TEXT - length, " ± %.*f", digits,
		 fmax(1, ceil(off * tens - 1e-9)) / tens);
}

void human_time(int64_t unix_ms, char text[HUMAN_TEXT])
{
	time_t seconds = (time_t)(unix_ms / 1000);
	struct tm utc;

	if (!gmtime_r(&seconds, &utc) || !strftime(text, HUMAN_TEXT, "%Y-%m-%dT%H:%M:%SZ", &utc))
		snprintf(text, HUMAN_TEXT, "%" PRId64 " ms", unix_ms);
}

struct human_marks human_marks(const struct flame_frame *frame)
{
	struct human_marks marks = {"", ""};

	if (frame->is_kernel || frame->kind == FRAME_kernel)
		marks.before = "[k] ";
	else if (frame->kind == FRAME_gpu)
		marks.before = "[gpu] ";
	if (frame->kind == FRAME_inline)
		marks.after = " (inlined)";
	else if (frame->kind == FRAME_unresolved)
		marks.after = " (unresolved)";
	else if (frame->kind == FRAME_jit)
		marks.after = " (jit)";
	return marks;
}

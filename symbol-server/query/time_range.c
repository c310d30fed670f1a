/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/query/time_range.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/options.h"

#define LAST_MS INT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */
#define MS_FROM INT64_C(100000000000)    /* design: numbers from here on are milliseconds */

enum { NUMBER_DIGITS = 15 };

static bool fail(struct error *err, const char *text)
{
	return error_set(err, ERROR_OPTION,
			 "'%.60s' is not a time: unix seconds or milliseconds, RFC 3339 such as "
			 "2026-08-01T12:00:00Z, now, or now-1h",
			 text);
}

/* ".25" → 250; end is set behind the digits. Digits after the third are read and dropped. */
static int64_t read_fraction(const char *text, const char **end)
{
	int64_t ms = 0;
	int digits = 0;

	*end = text;
	if (*text != '.')
		return 0;
	for (text++; *text >= '0' && *text <= '9'; text++, digits++)
		if (digits < 3)
			ms = ms * 10 + (*text - '0');
	for (int i = digits; i < 3; i++)
		ms *= 10;
	*end = digits ? text : *end;
	return ms;
}

static bool parse_number(const char *text, int64_t *ms)
{
	size_t digits = strspn(text, "0123456789");
	const char *end;
	int64_t number;

	if (!digits || digits > NUMBER_DIGITS)
		return false;
	number = strtoll(text, NULL, 10);
	*ms = read_fraction(text + digits, &end);
	*ms += number >= MS_FROM ? number - *ms : number * 1000;
	return !*end && *ms <= LAST_MS;
}

static bool parse_relative(const char *text, int64_t now_ms, int64_t *ms)
{
	int64_t distance = 0;

	text += strlen("now");
	if (*text && ((*text != '-' && *text != '+') || !duration_parse(text + 1, &distance, NULL)))
		return false;
	*ms = *text == '-' ? now_ms - distance : now_ms + distance;
	return *ms >= 0 && *ms <= LAST_MS;
}

static bool two_digits(const char *text, int *number)
{
	if (text[0] < '0' || text[0] > '9' || text[1] < '0' || text[1] > '9')
		return false;
	*number = (text[0] - '0') * 10 + text[1] - '0';
	return true;
}

/* "Z", "+02:00" → minutes east of Greenwich. */
static bool parse_zone(const char *text, int *minutes)
{
	int hour, minute;

	*minutes = 0;
	if ((*text == 'Z' || *text == 'z') && !text[1])
		return true;
	if ((*text != '+' && *text != '-') || strlen(text) != 6 || text[3] != ':' ||
	    !two_digits(text + 1, &hour) || !two_digits(text + 4, &minute) || hour > 23 ||
	    minute > 59)
		return false;
	*minutes = (hour * 60 + minute) * (*text == '-' ? -1 : 1);
	return true;
}

static bool parse_rfc3339(const char *text, int64_t *ms)
{
	struct tm parts = {0}, check;
	int century, year, month, zone;
	const char *end;
	time_t seconds;

	if (strlen(text) < 20 || text[4] != '-' || text[7] != '-' || !strchr("Tt ", text[10]) ||
	    text[13] != ':' || text[16] != ':')
		return false;
	if (!two_digits(text, &century) || !two_digits(text + 2, &year) ||
	    !two_digits(text + 5, &month) || !two_digits(text + 8, &parts.tm_mday) ||
	    !two_digits(text + 11, &parts.tm_hour) || !two_digits(text + 14, &parts.tm_min) ||
	    !two_digits(text + 17, &parts.tm_sec))
		return false;
	parts.tm_year = century * 100 + year - 1900;
	parts.tm_mon = month - 1;
	check = parts;
	seconds = timegm(&check); /* normalizes: the 31st of February comes out as another day */
	if (parts.tm_sec > 60 || parts.tm_min > 59 || parts.tm_hour > 23 ||
	    (parts.tm_sec < 60 && (check.tm_mday != parts.tm_mday || check.tm_mon != parts.tm_mon)))
		return false;
	*ms = read_fraction(text + 19, &end);
	if (!parse_zone(end, &zone))
		return false;
	*ms += ((int64_t)seconds - zone * 60) * 1000;
	return *ms >= 0 && *ms <= LAST_MS;
}

bool time_parse(const char *text, int64_t now_ms, int64_t *ms, struct error *err)
{
	int64_t parsed = 0;
	bool ok;

	if (!strncmp(text, "now", 3))
		ok = parse_relative(text, now_ms, &parsed);
	else
		ok = parse_number(text, &parsed) || parse_rfc3339(text, &parsed);
	if (!ok)
		return fail(err, text);
	*ms = parsed;
	return true;
}

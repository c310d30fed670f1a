/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/query/time_range.h"

#include <stddef.h>

#include "tests/check.h"

#define NOW INT64_C(1785585600123)

/* RFC 3339 rows: from `date -u -d … +%s%3N` */
static const struct {
	const char *text;
	int64_t ms;
} rows[] = {
	{"now", NOW},
	{"now-1h", NOW - 3600000},
	{"now-15m", NOW - 900000},
	{"now-250ms", NOW - 250},
	{"now+1d", NOW + 86400000},
	{"0", 0},
	{"1785585600", INT64_C(1785585600000)},
	{"1785585600.5", INT64_C(1785585600500)},
	{"1785585600.123987", INT64_C(1785585600123)},
	{"99999999999", INT64_C(99999999999000)},
	{"100000000000", INT64_C(100000000000)},
	{"1785585600123", INT64_C(1785585600123)},
	{"1970-01-01T00:00:00Z", 0},
	{"2026-08-01T12:00:00Z", INT64_C(1785585600000)},
	{"2026-08-01t12:00:00z", INT64_C(1785585600000)},
	{"2026-08-01T14:00:00+02:00", INT64_C(1785585600000)},
	{"2026-08-01T06:30:00.250-05:30", INT64_C(1785585600250)},
	{"2024-02-29T00:00:00Z", INT64_C(1709164800000)},
	{"2016-12-31T23:59:60Z", INT64_C(1483228800000)},
	{"9999-12-31T23:59:59Z", INT64_C(253402300799000)},
};

static const char *const refused[] = {
	"",
	"yesterday",
	"now-1",
	"now-",
	"now1h",
	"now-1h-1h",
	"now-99999d",
	"-5",
	"1e9",
	" 1",
	"1785585600.",
	"9999999999999999",
	"253402300800000",
	"2026-08-01",
	"2026-08-01T12:00:00",
	"2026-13-01T12:00:00Z",
	"2023-02-29T00:00:00Z",
	"2026-08-01T24:00:00Z",
	"2026-08-01T12:60:00Z",
	"2026-08-01T12:00:00+2:00",
	"2026-08-01T12:00:00+24:00",
	"2026-08-01T12:00:00Zx",
	"1969-12-31T23:59:59Z",
};

int main(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		int64_t ms = -1;

		CHECK(time_parse(rows[i].text, NOW, &ms, NULL));
		CHECK_NUMBER(ms, rows[i].ms);
		if (ms != rows[i].ms)
			printf("# %s\n", rows[i].text);
	}
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		struct error err = {0};
		int64_t ms = -1;

		if (!CHECK(!time_parse(refused[i], NOW, &ms, &err) && ms == -1))
			printf("# %s was taken as %lld\n", refused[i], (long long)ms);
		CHECK(err.kind == ERROR_OPTION);
	}
	return checks_done();
}

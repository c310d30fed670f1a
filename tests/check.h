/* SPDX-License-Identifier: Apache-2.0 */
/* A test is a function; a test program prints TAP. CHECK() for one condition, CHECK_TEXT() and
 * CHECK_NUMBER() show both sides. SKIP() says why and is counted as skipped, never as passed. */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int checks_run, checks_failed;

__attribute__((unused)) static int check_report(int ok, const char *what, const char *file, int line)
{
	checks_run++;
	if (ok) {
		printf("ok %d - %s\n", checks_run, what);
	} else {
		checks_failed++;
		printf("not ok %d - %s\n# at %s:%d\n", checks_run, what, file, line);
	}
	fflush(stdout);
	return ok;
}

#define CHECK(condition) check_report(!!(condition), #condition, __FILE__, __LINE__)

#define CHECK_TEXT(got_, want_)                                                                    \
	do {                                                                                       \
		const char *got__ = (got_), *want__ = (want_);                                     \
		if (!check_report(got__ && !strcmp(got__, want__), #got_ " is " #want_, __FILE__,  \
				  __LINE__))                                                       \
			printf("#  got: %s\n# want: %s\n", got__ ? got__ : "(null)", want__);      \
	} while (0)

#define CHECK_NUMBER(got_, want_)                                                                  \
	do {                                                                                       \
		int64_t got__ = (int64_t)(got_), want__ = (int64_t)(want_);                        \
		if (!check_report(got__ == want__, #got_ " == " #want_, __FILE__, __LINE__))       \
			printf("#  got: %" PRId64 "\n# want: %" PRId64 "\n", got__, want__);       \
	} while (0)

#define SKIP(why)                                                                                  \
	do {                                                                                       \
		checks_run++;                                                                      \
		printf("ok %d # SKIP %s\n", checks_run, why);                                      \
	} while (0)

__attribute__((unused)) static int checks_done(void)
{
	printf("1..%d\n", checks_run);
	return checks_failed != 0;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreters that this machine has: Debian's and pyenv's. */
#ifndef TESTS_UNIT_RUNTIMES_INTERPRETERS_H
#define TESTS_UNIT_RUNTIMES_INTERPRETERS_H

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/check.h"

static void test_interpreters(void (*test)(const char *path))
{
	glob_t found = {0};
	char pattern[300];

	snprintf(pattern, sizeof pattern, "%s/.pyenv/versions/3.*/bin/python3",
		 getenv("HOME") ? getenv("HOME") : "/root");
	glob("/usr/bin/python3", 0, NULL, &found);
	glob(pattern, GLOB_APPEND, NULL, &found);
	if (found.gl_pathc == 0)
		SKIP("no CPython");
	for (size_t i = 0; i < found.gl_pathc; i++)
		test(found.gl_pathv[i]);
	globfree(&found);
}

#endif

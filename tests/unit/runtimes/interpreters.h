/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreters that this machine has: Debian's and pyenv's. */
#ifndef TESTS_UNIT_RUNTIMES_INTERPRETERS_H
#define TESTS_UNIT_RUNTIMES_INTERPRETERS_H

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/check.h"

/* Where pyenv has its versions. */
static inline const char *pyenv_pattern(char *pattern, size_t bytes, const char *below)
{
	snprintf(pattern, bytes, "%s/.pyenv/versions/3.*/%s", getenv("HOME") ? getenv("HOME") : "",
		 below);
	return pattern;
}

static inline void test_interpreters(void (*test)(const char *path))
{
	glob_t found = {0};
	char pattern[300];

	pyenv_pattern(pattern, sizeof pattern, "bin/python3");
	glob("/usr/bin/python3", 0, NULL, &found);
	glob(pattern, GLOB_APPEND, NULL, &found);
	if (found.gl_pathc == 0)
		SKIP("no CPython");
	for (size_t i = 0; i < found.gl_pathc; i++)
		test(found.gl_pathv[i]);
	globfree(&found);
}

#endif

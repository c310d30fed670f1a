/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_SHELL_H
#define TESTS_UNIT_SHELL_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Runs a script in which %s stands for the test's folder. */
static inline bool shell(const char *format, const char *directory)
{
	char text[2048];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(text, sizeof text, format, directory);
#pragma GCC diagnostic pop
	return system(text) == 0;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of made-up processes begin with: their file, tests/golden/elf/little64.elf, whose code
 * at file offset 0x300 has the address 0x2300, as eu-readelf -l says; their times; a folder for
 * /proc. */
#ifndef TESTS_UNIT_PROCESSES_GOLDEN_PROCESS_H
#define TESTS_UNIT_PROCESSES_GOLDEN_PROCESS_H

#include "tests/unit/processes/fake_proc.h"
#include "tests/unit/processes/process_times.h"

#define TICK 10000000ull

static char golden[PATH_MAX];
static struct stat golden_stat;

static void golden_begin(void)
{
	times_begin();
	if (!realpath("tests/golden/elf/little64.elf", golden) || stat(golden, &golden_stat))
		abort();
	fake_make();
}

#endif

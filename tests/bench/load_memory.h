/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs that make load for the benches build batches of. */
#ifndef TESTS_BENCH_LOAD_MEMORY_H
#define TESTS_BENCH_LOAD_MEMORY_H

#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "symbol-server/store/sample_batch.h"

static inline void *take(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (!memory)
		err(1, "memory");
	return memory;
}

static inline struct text text_of(const char *text)
{
	return (struct text){text, (uint32_t)strlen(text)};
}

#endif

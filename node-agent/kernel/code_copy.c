/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/kernel/code_copy.h"

#include <string.h>
#include <unistd.h>

/* The copy's macros carry no context: one thread at a time. */
static _Thread_local int now;

static int read_memory(void *to, uint64_t bytes, uint64_t from)
{
	return pread(now, to, bytes, (off_t)from) != (ssize_t)bytes;
}

#define RUNTIME_READ(to, bytes, from) read_memory(to, bytes, from)
#include "bpf/runtime_copy.bpf.h"

bool code_copy(int memory, const struct runtime_layout *layout, struct runtime_code_event *told)
{
	uint8_t again[RUNTIME_CODE_HEAD];

	*told = (struct runtime_code_event){.address = told->address};
	now = memory;
	runtime_code_fill(layout, told);
	return told->head_bytes && !read_memory(again, told->head_bytes, told->address) &&
	       !memcmp(again, told->head, told->head_bytes);
}

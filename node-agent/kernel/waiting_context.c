/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/kernel/waiting_context.h"

#include <sys/uio.h>

/* The reader's macros carry no context: one thread at a time. */
static _Thread_local pid_t now;

static int read_memory(void *to, uint64_t bytes, uint64_t from)
{
	const struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)from, bytes};

	return bytes && process_vm_readv(now, &local, 1, &remote, 1, 0) != (ssize_t)bytes;
}

#define CONTEXT_READ(to, bytes, from) read_memory(to, bytes, from)
#include "bpf/context_read.bpf.h"

uint32_t waiting_context_read(uint32_t tid, const struct thread_context_place *place,
			      uint64_t pointer, struct thread_context *room, bool *is_missing)
{
	uint64_t words[CONTEXT_WORDS];
	int missing = 0;
	uint32_t bytes;

	now = (pid_t)tid;
	if (place->kind >= THREAD_CONTEXT_GO_LIST)
		bytes = context_read_labels(place, pointer, room, (__u64 *)words, &missing);
	else
		bytes = context_read_record(place, pointer, room, &missing);
	*is_missing = missing != 0;
	return bytes;
}

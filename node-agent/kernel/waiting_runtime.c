/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/kernel/waiting_runtime.h"

#include <string.h>
#include <sys/uio.h>

/* The reader's macros carry no context: one thread at a time. */
static _Thread_local pid_t now;

static int read_memory(void *to, uint64_t bytes, uint64_t from)
{
	const struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)from, bytes};

	return process_vm_readv(now, &local, 1, &remote, 1, 0) != (ssize_t)bytes;
}

#define RUNTIME_READ(to, bytes, from) read_memory(to, bytes, from)
#include "bpf/python_walk.bpf.h"

uint32_t waiting_runtime_read(uint32_t tid, const struct runtime_place *place, uint64_t pointer,
			      uint64_t *words)
{
	struct runtime_walk walk;

	memset(&walk, 0, sizeof walk);
	walk.limit = RUNTIME_FRAMES_MAX;
	now = (pid_t)tid;
	if (!python_walk_begin(&walk, (__u64 *)words, place, pointer))
		while (!python_walk_step(&walk, (__u64 *)words))
			;
	return walk.count;
}

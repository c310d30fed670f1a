/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/allocations/go_buckets.h"

#include "node-agent/kernel/stranger_reader.h"

enum {
	TYPE_MEMORY = 1,
	STACK_MAX = 1024, /* runtime.maxProfStackDepth, of 1.23 on; less before */
	CYCLES = 4,       /* what the profile shows, and what it does not show yet */
};

struct bucket_head {
	uint64_t next, all_next, type, hash, size, stack_length;
};

struct cycle {
	uint64_t taken, given, taken_bytes, given_bytes;
};

uint64_t go_bucket_in_use(int directory, uint64_t bucket)
{
	struct cycle cycles[CYCLES];
	struct bucket_head head;
	uint64_t taken = 0, given = 0;

	if (!stranger_memory_read(directory, bucket, &head, sizeof head) ||
	    head.type != TYPE_MEMORY || head.stack_length > STACK_MAX ||
	    !stranger_memory_read(directory, bucket + sizeof head + 8 * head.stack_length, cycles,
				  sizeof cycles))
		return UINT64_MAX;
	for (int i = 0; i < CYCLES; i++) {
		taken += cycles[i].taken;
		given += cycles[i].given;
	}
	return taken >= given ? taken - given : UINT64_MAX;
}

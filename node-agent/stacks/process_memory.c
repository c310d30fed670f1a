/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/stacks/process_memory.h"

#include <unistd.h>

#include "node-agent/kernel/stranger_reader.h"
#include "node-agent/processes/process_files.h"

void process_memory_begin(struct process_memory *memory, const struct process_key *process)
{
	*memory = (struct process_memory){*process, -1};
}

void process_memory_end(struct process_memory *memory)
{
	if (memory->directory >= 0)
		close(memory->directory);
	memory->directory = -2;
}

bool process_memory_read(void *context, uint64_t address, void *to, size_t bytes)
{
	struct process_memory *memory = context;

	if (memory->directory == -1)
		memory->directory = process_directory_open("/proc", memory->process.tgid,
							   memory->process.start_time_ns);
	if (memory->directory < 0)
		memory->directory = -2;
	return memory->directory >= 0 &&
	       stranger_memory_read(memory->directory, address, to, bytes);
}

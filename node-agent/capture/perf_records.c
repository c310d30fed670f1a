/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/perf_records.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>

/* What sample_id_all appends to every record. */
struct record_trailer {
	uint32_t pid, tid;
	uint64_t time_ns;
};

struct task_record { /* PERF_RECORD_FORK and _EXIT */
	struct perf_event_header header;
	uint32_t pid, ppid;
	uint32_t tid, ptid;
	uint64_t time_ns;
};

struct comm_record { /* PERF_RECORD_COMM; the name follows */
	struct perf_event_header header;
	uint32_t pid, tid;
};

struct lost_record {
	struct perf_event_header header;
	uint64_t id, lost;
};

struct mmap2_record { /* PERF_RECORD_MMAP2; the path follows */
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t address, length, file_offset;
	union {
		struct {
			uint32_t major, minor;
			uint64_t inode, inode_generation;
		};
		struct { /* with PERF_RECORD_MISC_MMAP_BUILD_ID */
			uint8_t build_id_length;
			uint8_t reserved[3];
			uint8_t build_id[20];
		};
	};
	uint32_t protection, flags;
};

uint64_t perf_record_time(const void *record, size_t length)
{
	struct record_trailer trailer;

	if (length < sizeof(struct perf_event_header) + sizeof trailer)
		return 0;
	memcpy(&trailer, (const uint8_t *)record + length - sizeof trailer, sizeof trailer);
	return trailer.time_ns;
}

static bool is_anonymous(const char *path)
{
	return !*path || !strcmp(path, "//anon") || !strcmp(path, "[heap]") ||
	       !strncmp(path, "[stack", 6) || !strncmp(path, "[anon", 5) ||
	       !strncmp(path, "/anon_hugepage", 14) || !strncmp(path, "/dev/zero", 9) ||
	       !strncmp(path, "/SYSV", 5);
}

static bool parse_mapping(const uint8_t *record, size_t length, struct process_event *event)
{
	struct mapping_event *mapping = &event->mapping;
	size_t room = length - sizeof(struct record_trailer);
	const char *path = (const char *)record + sizeof(struct mmap2_record);
	struct mmap2_record fixed;

	if (room < sizeof fixed)
		return false;
	memcpy(&fixed, record, sizeof fixed);
	if (!memchr(path, '\0', room - sizeof fixed))
		return false;
	event->type = PROCESS_EVENT_OTHER;
	if (!(fixed.protection & PROT_EXEC) || fixed.address + fixed.length < fixed.address)
		return true;
	event->type = PROCESS_EVENT_MAPPING;
	event->tgid = fixed.pid;
	event->tid = fixed.tid;
	*mapping = (struct mapping_event){
		.time_ns = event->time_ns,
		.tgid = fixed.pid,
		.start = fixed.address,
		.length = fixed.length,
		.file_offset = fixed.file_offset,
		.is_anonymous = is_anonymous(path),
		.path = path,
	};
	if (!(fixed.header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID)) {
		mapping->device_major = fixed.major;
		mapping->device_minor = fixed.minor;
		mapping->inode = fixed.inode;
		mapping->inode_generation = fixed.inode_generation;
	} else if (fixed.build_id_length <= sizeof fixed.build_id) {
		/* Too short for a build-id is none. */
		build_id_set(&mapping->build_id, fixed.build_id, fixed.build_id_length);
	}
	return true;
}

static bool parse_task(const uint8_t *record, size_t length, uint32_t type,
		       struct process_event *event)
{
	struct task_record task;

	if (length < sizeof task + sizeof(struct record_trailer))
		return false;
	memcpy(&task, record, sizeof task);
	event->tgid = task.pid;
	event->tid = task.tid;
	if (type == PERF_RECORD_EXIT) {
		event->type = PROCESS_EVENT_THREAD_EXIT;
	} else {
		event->type = task.pid != task.ppid ? PROCESS_EVENT_FORK : PROCESS_EVENT_THREAD;
		event->parent_tgid = task.ppid;
		event->parent_tid = task.ptid;
	}
	return true;
}

static bool parse_comm(const uint8_t *record, size_t length, struct process_event *event)
{
	struct comm_record comm;
	size_t room;

	if (length < sizeof comm + sizeof(struct record_trailer))
		return false;
	memcpy(&comm, record, sizeof comm);
	event->tgid = comm.pid;
	event->tid = comm.tid;
	event->type = comm.header.misc & PERF_RECORD_MISC_COMM_EXEC ? PROCESS_EVENT_EXEC
								    : PROCESS_EVENT_NAME;
	room = length - sizeof comm - sizeof(struct record_trailer);
	if (room > sizeof event->name - 1)
		room = sizeof event->name - 1;
	memcpy(event->name, record + sizeof comm,
	       strnlen((const char *)record + sizeof comm, room));
	return true;
}

static bool parse_lost(const uint8_t *record, size_t length, struct process_event *event)
{
	struct lost_record lost;

	if (length < sizeof lost + sizeof(struct record_trailer))
		return false;
	memcpy(&lost, record, sizeof lost);
	event->type = PROCESS_EVENT_LOST;
	event->lost = lost.lost;
	return true;
}

bool perf_record_parse(const void *record, size_t length, struct process_event *event)
{
	struct perf_event_header header;

	*event = (struct process_event){.type = PROCESS_EVENT_OTHER};
	if (length < sizeof header + sizeof(struct record_trailer))
		return false;
	memcpy(&header, record, sizeof header);
	if (header.size != length)
		return false;
	event->time_ns = perf_record_time(record, length);
	switch (header.type) {
	case PERF_RECORD_MMAP2:
		return parse_mapping(record, length, event);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return parse_task(record, length, header.type, event);
	case PERF_RECORD_COMM:
		return parse_comm(record, length, event);
	case PERF_RECORD_LOST:
		return parse_lost(record, length, event);
	}
	return true;
}

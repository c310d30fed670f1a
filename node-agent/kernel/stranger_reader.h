/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of strangers: this program again, as a child that does for the main thread what a
 * stranger can keep waiting for as long as it likes. A mapping of a FUSE file, or of a dead NFS
 * server's, is never served; neither are lookups and opens on such a file system. Each question has
 * a deadline of STRANGER_DEADLINE_MS. When that is over the child is killed and left alone (the
 * kernel may hold it for good), another one goes on, and whom it was asked about is not asked about
 * any more for a while that doubles: the process, its user from the second time on, the device.
 * What a stranger may cost the main thread is bounded:
 * - STRANGER_STALL_MS at once, and 2 % of the time afterwards, for each kind of question;
 * - so many children that are held (STRANGER_HELD_*): then nothing of that kind is asked until one
 *   of them is gone. Each is counted, logged, and a process without memory of its own.
 *
 * What may wait, and so goes through here:
 * - a process' memory: mem, cmdline, environ, process_vm_readv(2); by page faults of its mappings
 * - maps, map_files/: by its mmap lock, which a page fault may hold; before 5.11 by its exec
 * - paths below a process' root or ours: by lookups; opening what is found: FUSE_OPEN, NFS
 * - bytes of an open file, statfs(2)
 * - exe and root in /proc/PID, even by O_PATH: a dead NFS server is asked whether it is still there
 * What may not, and stays: stat, status, cgroup, comm, and the texts of links in /proc/PID, which
 * are the kernel's own; statx(2) with AT_STATX_DONT_SYNC of what is open. Files' contents are read
 * by the parser (file_parser/file_parser.h), which has a deadline of its own.
 *
 * For the main thread only. Before stranger_reader_start() all is done here and now: for tests. */
#ifndef NODE_AGENT_KERNEL_STRANGER_READER_H
#define NODE_AGENT_KERNEL_STRANGER_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "bpf/runtime_frames.h"
#include "bpf/thread_context.h"
#include "common/error.h"
#include "node-agent/kernel/stranger_file.h"

enum {
	STRANGER_DEADLINE_MS = 100,
	STRANGER_STALL_MS = 1000,
	STRANGER_HELD_MEMORY = 6, /* other questions have some left then */
	STRANGER_HELD_FILES = 9,
	STRANGER_HELD_MAPS = 12,
};

/* As file_parser_main(). */
int stranger_reader_main(int argc, char **argv);

bool stranger_reader_start(struct error *err);
void stranger_reader_stop(void); /* does not wait for it */

/* --- memory --- */

/* directory: /proc/PID, as an O_PATH descriptor. False: not all of it. */
bool stranger_memory_read(int directory, uint64_t address, void *to, size_t bytes);
/* The code object at told->address, in one question: see code_copy.h. */
bool stranger_code_read(int directory, const struct runtime_layout *layout,
			struct runtime_code_event *told);
/* The beginning of a file of that directory which shows its memory: cmdline, environ. Returns how
 * much of the room, at most 64 KiB, it took; 0: nothing, or not to be had. */
size_t stranger_text_read(int directory, const char *name, void *to, size_t room);

enum { STRANGER_THREADS_MAX = 8 };

/* A thread that waits. */
struct stranger_thread {
	uint32_t tgid, tid;
	uint64_t start_time_ns;
	bool has_stack, has_place, has_runtime; /* what is wanted */
	uint64_t code_at, stack_at, pointer;
	struct thread_context_place place; /* with pointer: of its context */
	struct runtime_place runtime;      /* the same of its interpreter's frames */
	void *stack;                       /* room for STACK_COPY_BYTES_MAX */
	struct thread_context *published;  /* room for THREAD_CONTEXT_MAX */
	uint64_t *runtime_frames;          /* with has_runtime: room for RUNTIME_WORDS_MAX */
	/* What there is: */
	bool has_code, is_missing; /* as waiting_context_read() */
	uint8_t code[2];
	uint32_t stack_bytes, context_bytes, runtime_words;
};

/* cost_ns: CPU time that it cost elsewhere. */
void stranger_threads_read(struct stranger_thread *threads, uint32_t count, uint64_t *cost_ns);

/* --- files --- */

/* As openat(2) with O_PATH, stat, readlinkat(2) of a link in /proc/PID that leads to a file. */
int stranger_open_at(int directory, const char *name);
bool stranger_stat_at(int directory, const char *name, struct stat *st);
bool stranger_link_at(int directory, const char *name, char *text, size_t room);

/* As stranger_file_reopen(), stranger_file_find(); EBUSY: not asked. */
int stranger_reopen(int path_fd);
int stranger_find(int folder, const char *path, const struct file_search *search);

/* As pread(2), all or nothing; bytes: at most 64 KiB. */
bool stranger_file_read(int fd, uint64_t offset, void *to, size_t bytes);

/* statfs(2)'s f_type; 0: not told. */
uint64_t stranger_file_system(int fd);

/* --- /proc/PID/maps --- */

/* One reading. Each may have STRANGER_MAPS_ALWAYS bytes; more, up to STRANGER_MAPS_MOST, only out
 * of what all together may have in a second. What lies behind is not read: is_cut. */
enum {
	STRANGER_MAPS_STEP = 64 << 10, /* of text at a time */
	STRANGER_MAPS_ALWAYS = 256 << 10,
	STRANGER_MAPS_MOST = 8 << 20,
	STRANGER_MAPS_A_SECOND = 8 << 20,
	STRANGER_MAPS_SAVED = 32 << 20, /* of seconds that did not need theirs */
};

struct stranger_maps {
	int directory;
	bool is_open, is_cut, has_failed;
	int error; /* of a failure */
	uint64_t bytes, limit, begin_ns, cost_ns;
	size_t length, at; /* stranger_maps_line() */
	char *text;
};

void stranger_maps_begin(struct stranger_maps *maps, int directory);
/* The next piece of text, of at most STRANGER_MAPS_STEP bytes. 0: there is no more. */
size_t stranger_maps_read(struct stranger_maps *maps, char *to, size_t room);
/* The next line, cut to the room as fgets(3) has it, without its newline. NULL: there is none. */
const char *stranger_maps_line(struct stranger_maps *maps, char *line, size_t room);
/* Says what was cut; cost_ns is there then. */
void stranger_maps_end(struct stranger_maps *maps);

/* --- what became of it --- */

struct stranger_reader_counters {
	uint64_t asked, cpu_ns;
	uint64_t hung;       /* not answered in time */
	uint64_t refused;    /* not asked, since they had hung before, or too many hang */
	uint64_t died;       /* children that ended without an answer */
	uint64_t maps_cut;   /* readings */
	uint64_t stalled_ms; /* waited for what hung */
	uint32_t held;       /* children that live on */
};
void stranger_reader_counters(struct stranger_reader_counters *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The text of /proc/PID/maps, row by row; nobody else parses it. Format: proc_pid_maps(5); what
 * writes it is show_map_vma() in the kernel's fs/proc/task_mmu.c. */
#ifndef NODE_AGENT_PROCESSES_MEMORY_MAP_H
#define NODE_AGENT_PROCESSES_MEMORY_MAP_H

#include <stdbool.h>
#include <stdint.h>

struct stranger_maps; /* node-agent/kernel/stranger_reader.h */

enum memory_kind {
	MEMORY_FILE,      /* a file's bytes, also of a deleted file or a memfd */
	MEMORY_VDSO,      /* the kernel's own shared object */
	MEMORY_UPROBE,    /* the kernel's page by which return probes come */
	MEMORY_ANONYMOUS, /* no file: JIT code, [heap], [vsyscall] …; and jitdump */
};

enum { MEMORY_PATH_MAX = 4096 }; /* the kernel's PATH_MAX; longer paths read "" */

struct memory_row {
	uint64_t start, end, file_offset;
	uint64_t inode;
	uint32_t device_major, device_minor;
	bool is_executable;
	enum memory_kind kind;
	char path[MEMORY_PATH_MAX]; /* unescaped, without " (deleted)"; "" for none */
};

/* What kind of memory a mapping's path names, given whether it has an inode. Also for the paths of
 * perf's mmap records ("//anon", "[vdso]"). */
enum memory_kind memory_kind_of(const char *path, bool has_inode);

/* Whether the path is that of a file in which a runtime tells of its code, jit-PID.dump, mapped
 * executable so that perf sees it; nothing runs there. *pid: as the name says. */
bool memory_path_is_dump(const char *path, uint32_t *pid);

/* Cuts " (deleted)" off a path in place, as /proc shows it for unlinked files. True: it was there.
 */
bool memory_path_cut_deleted(char *path);

enum memory_read {
	MEMORY_ROW, /* row is filled, *text moved behind its line */
	MEMORY_BAD, /* the line is not a mapping; *text moved behind it */
	MEMORY_END, /* nothing is left */
};

/* Takes one line off the front of *text, which ends at end; a last line without '\n' counts. */
enum memory_read memory_map_next(const char **text, const char *end, struct memory_row *row);

/* The next mapping of a process whose maps are being read; lines that are none are passed over.
 * False: there are no more. */
bool memory_map_read(struct stranger_maps *maps, struct memory_row *row);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc shows of one process, read so that a reused pid is never taken for the process. */
#ifndef NODE_AGENT_PROCESSES_PROCESS_FILES_H
#define NODE_AGENT_PROCESSES_PROCESS_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/buffer.h"
#include "common/error.h"

/* The directory /proc/PID as a descriptor: it goes on meaning the same process, and what is opened
 * through it fails with ESRCH once that process is gone. −1: there is none, or one that started at
 * another time. start_time_ns as samples have it (CLOCK_BOOTTIME); 0: not known, not compared. */
int process_directory_open(const char *proc_root, uint32_t tgid, uint64_t start_time_ns);

/* The last process' directory, kept open: much is asked about a process when it is first seen, and
 * who it is has to be compared once. */
struct process_directory {
	const char *proc_root; /* borrowed */
	int fd;                /* −1: none */
	uint32_t tgid;
	uint64_t start_time_ns; /* 0: was not compared, so it serves nobody else */
};

void process_directory_init(struct process_directory *last, const char *proc_root);
/* As process_directory_open(); the descriptor stays last's, and is there until the next call. It
 * may be of a process that has ended since. */
int process_directory_of(struct process_directory *last, uint32_t tgid, uint64_t start_time_ns);
void process_directory_close(struct process_directory *last);

/* Appends the whole file; the buffer's limit bounds it. */
bool process_file_read(int directory, const char *name, struct buffer *out, struct error *err);

/* A symbolic link's text, such as "exe"; false: none, or longer than room. */
bool process_link_read(int directory, const char *name, char *text, size_t room);

/* The user that the process began as. */
bool process_user(int directory, uid_t *uid);
/* Its number in the innermost namespace that it is in. */
bool process_inner_pid(int directory, uint32_t *pid);
/* The process that it has as its parent now. */
bool process_parent(int directory, uint32_t *tgid);

/* A mapping's file as an O_PATH descriptor: nothing of the file itself is opened yet. −1: not to be
 * had. Through map_files, which works for deleted files and other mount namespaces: start and end
 * must be the mapping's own. */
int process_open_mapping(int directory, uint64_t start, uint64_t end);
/* stranger_file_stat() of the mapping's file, without opening it. */
bool process_stat_mapping(int directory, uint64_t start, uint64_t end, struct stat *st);
/* Whether the mapping's file is called path now, " (deleted)" aside. */
bool process_mapping_has_path(int directory, uint64_t start, uint64_t end, const char *path);
/* By path below /proc/PID/root, in its mount namespace, as an O_PATH descriptor; a regular file
 * that the user the process began as may read. The kernel's paths have no links, so none is
 * followed. The caller checks that it is the same file. */
int process_open_path(int directory, const char *path);
/* By path below this process' own root; for processes that are gone. *is_public: everybody may read
 * it. Of one that is not nobody can say any more whether the process could. */
int process_open_own_path(const char *path, bool *is_public);

/* Field 22 of /proc/PID/stat in clock ticks since boot, proc_pid_stat(5). Pure. */
bool process_stat_start_time(const char *stat, size_t length, uint64_t *ticks);
/* The same of a process, in nanoseconds, as exact as clock ticks are. 0: not to be had. */
uint64_t process_start_ns(uint32_t tgid);

#endif

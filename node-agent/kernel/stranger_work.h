/* SPDX-License-Identifier: Apache-2.0 */
/* What the reader of strangers is asked, in memory that it shares with the agent: inside
 * stranger_reader.h only. */
#ifndef NODE_AGENT_KERNEL_STRANGER_WORK_H
#define NODE_AGENT_KERNEL_STRANGER_WORK_H

#include "bpf/events.h"
#include "node-agent/kernel/stranger_reader.h"

#define STRANGER_READER_NAME "farflame-reader" /* argv[0] of the child; also what ps shows */

enum stranger_question {
	STRANGER_MEMORY,  /* fd: /proc/PID */
	STRANGER_TEXT,    /* fd: /proc/PID; text: the name of a file of its memory */
	STRANGER_CODE,    /* fd: /proc/PID */
	STRANGER_THREADS, /* none */
	STRANGER_MAPS,    /* fd: /proc/PID; or none: goes on with the last one's */
	STRANGER_OPEN_AT, /* fd: the directory; text: the name */
	STRANGER_STAT_AT,
	STRANGER_LINK_AT,
	STRANGER_REOPEN, /* fd: the file */
	STRANGER_FIND,   /* fd: the folder; text: the path */
	STRANGER_PREAD,
	STRANGER_STATFS,
};

struct stranger_room {
	uint32_t question; /* enum stranger_question */
	uint32_t count;
	uint64_t at, bytes;
	struct file_search search;
	struct stranger_thread threads[STRANGER_THREADS_MAX];
	/* The answer: */
	volatile uint32_t now; /* which of the threads it is at */
	int32_t error;         /* errno, or 0 */
	uint64_t got;          /* bytes, or f_type */
	uint64_t cpu_ns;       /* of the child, so far */
	struct stat st;
	union {
		char text[STRANGER_MAPS_STEP]; /* a name, a path, maps, memory, a file's bytes */
		struct {
			struct runtime_layout layout;
			struct runtime_code_event told;
		} code;
		struct {
			uint8_t stack[STACK_COPY_BYTES_MAX];
			uint64_t context[THREAD_CONTEXT_MAX / 8];
			uint64_t runtime[RUNTIME_WORDS_MAX];
		} of[STRANGER_THREADS_MAX];
	};
};

/* The next piece of maps; 0: its end, or *error. */
size_t stranger_maps_piece(int directory, bool is_first, char *to, size_t bytes, int *error);
uint64_t stranger_maps_cut(void); /* readings */
/* Of its directory in /proc; 0: it is none. */
uint32_t stranger_pid(int directory);

/* Answers in room. Returns a descriptor that is part of the answer, or −1. fd is the caller's. */
int stranger_work(struct stranger_room *room, int fd);

#endif

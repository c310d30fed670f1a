/* SPDX-License-Identifier: Apache-2.0 */
/* A stack that the kernel side could not walk to its end, finished from its copy by the same
 * walkers (bpf/stack_walk.bpf.h, bpf/hotspot_walk.bpf.h) compiled as ordinary C. The stack is the
 * copy's, code is what read_code gives, and what a JVM says of its code what read_java does. */
#ifndef NODE_AGENT_UNWIND_STACK_FINISH_H
#define NODE_AGENT_UNWIND_STACK_FINISH_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/events.h"
#include "bpf/hotspot_frames.h"
#include "bpf/results.h"
#include "node-agent/unwind/row_pages.h"

/* Of the process as it was when the sample was taken. */
struct stack_code {
	enum {
		STACK_CODE_FILE,
		STACK_CODE_ANONYMOUS,
		STACK_CODE_NONE,    /* no executable mapping */
		STACK_CODE_UNKNOWN, /* the mapping or its file was not to be had */
		STACK_CODE_CHANGED, /* the mapping is younger than the sample */
		STACK_CODE_ASKED,   /* its file is being read: the stack waits for that */
		STACK_CODE_UPROBE,  /* the kernel's page where return probes come by */
	} place;
	uint32_t executable; /* FILE */
	uint64_t base;       /* ELF address = address − base */
};
typedef struct stack_code (*stack_locate)(void *context, uint64_t address);

/* The bytes at an address of code, for checks of instructions; false: not to be had. */
typedef bool (*stack_read_code)(void *context, uint64_t address, void *to, uint32_t length);

/* The same of any memory of a process with a JVM: code, methods, the maps of its code cache. */
typedef bool (*stack_read_java)(void *context, uint64_t address, void *to, uint32_t length);

struct stack_finish {
	const struct stack_copy_event *copy; /* checked against the record's length by the caller */
	uint64_t *frames;      /* the user part so far, leaf first, in the sample's form */
	uint32_t count, limit; /* frames: room for limit, 1 to USER_FRAMES_MAX */
	stack_locate locate;
	stack_read_code read_code;        /* NULL: none */
	const struct hotspot_place *java; /* NULL: the process has no JVM that is known */
	stack_read_java read_java;        /* with java */
	void *context;
	uint32_t now_s;
};

struct stack_finished {
	/* For this page, which is ABSENT; executable 0: for a file. frames are as they were. */
	bool is_waiting;
	uint32_t executable, page;
	enum walk_result result; /* otherwise: how it ended; frames has count frames */
	uint32_t count;
	bool is_guessed, is_end_guessed; /* as struct stack_walk has them */
};

struct stack_finished stack_finish(const struct stack_finish *input, struct row_pages *pages);

#endif

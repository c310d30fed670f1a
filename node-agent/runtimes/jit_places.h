/* SPDX-License-Identifier: Apache-2.0 */
/* Where a process has a file that tells of its code, and whether it may be believed. */
#ifndef NODE_AGENT_RUNTIMES_JIT_PLACES_H
#define NODE_AGENT_RUNTIMES_JIT_PLACES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "node-agent/file_parser/jit/jit_chunk.h"

struct process;

struct jit_owner {
	uint32_t pid;               /* as the process' own namespace counts; 0: not read yet */
	uid_t user;                 /* that it began as */
	enum jit_language language; /* of a runtime that it has mapped */
};

struct jit_place {
	enum jit_format format;
	uint64_t start, end; /* JIT_DUMP: its mapping; end 0: not known of */
	/* As it was seen last: */
	dev_t device;
	ino_t inode; /* 0: never */
	uint64_t bytes, seen_ns;
};

/* directory: /proc/PID as an O_PATH descriptor. False: it is gone, or not to be had now. */
bool jit_owner_read(int directory, struct jit_owner *owner);

/* Reads what the process has mapped: the owner's language, and where its dump is. */
void jit_place_find(int directory, struct jit_owner *owner, struct jit_place *dump);

enum { JIT_PLACE_ABSENT = -1, JIT_PLACE_FOREIGN = -2 };

/* An O_PATH descriptor; the place says what it is like now. FOREIGN: something is there that is not
 * the process': another user's, a link, or older than it. */
int jit_place_look(int directory, const struct process *process, const struct jit_owner *owner,
		   struct jit_place *place);

static inline bool jit_place_is_same(const struct jit_place *a, const struct jit_place *b)
{
	return a->device == b->device && a->inode == b->inode;
}

#endif

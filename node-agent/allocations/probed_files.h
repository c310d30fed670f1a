/* SPDX-License-Identifier: Apache-2.0 */
/* Files whose code takes memory, and the probes in them: each is looked at once, by the parser of
 * strangers' files, and its probes hold for all processes that have it. A probe keeps its file's
 * file system busy, so that it goes soon after the last of them. Bounded; what there was no room
 * for is counted. */
#ifndef NODE_AGENT_ALLOCATIONS_PROBED_FILES_H
#define NODE_AGENT_ALLOCATIONS_PROBED_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "node-agent/capture/capture.h"
#include "node-agent/stacks/code_pages.h"

enum {
	PROBED_FILES_MAX = 1024,
	PROBED_FILE_PROBES = 3,
};

enum file_state {
	FILE_NEW,   /* to be asked for */
	FILE_ASKED, /* the parser has it */
	FILE_NONE,  /* nothing to probe */
	FILE_PROBED,
	FILE_BY_PROCESS, /* one of its processes is cut off: the others have probes of their own */
	FILE_FAILED,
};

struct probed_file {
	dev_t device; /* 0: of any overlay file system */
	dev_t seen;   /* the file system that it was met in first, also such a one */
	ino_t inode;
	struct timespec changed;
	enum file_state state;
	int fd; /* −1: not needed any more */
	int probes[PROBED_FILE_PROBES];
	struct probe_spot { /* where they are */
		uint64_t at;
		uint32_t semaphore;
		int program;
	} spots[PROBED_FILE_PROBES];
	uint32_t spot_count;
	int64_t used_ms;
	uint32_t processes;
	uint64_t base, rate; /* ELF addresses; rate 0: not known */
	bool is_told;        /* that it keeps no profile */
	char name[64];
	uint32_t number; /* of the question; 0: no file */
};

struct probed_files {
	const struct capture *capture; /* borrowed, as pages */
	struct code_pages *pages;
	bool wants_frees;
	struct probed_file items[PROBED_FILES_MAX];
	uint32_t count, last_number;
	uint64_t failed, refused;
};

/* The index of the file that /proc/PID/exe, or a path below the process' root, is;
 * PROBED_FILES_MAX: there is none, no regular file, or no room for it. */
uint32_t probed_files_of_process(struct probed_files *files, uint32_t tgid);
uint32_t probed_files_mapped(struct probed_files *files, uint32_t tgid, const char *path);
/* The same where its mapping is known: also a file that is deleted or that its path does not lead
 * to. */
uint32_t probed_files_mapping(struct probed_files *files, uint32_t tgid, uint64_t start,
			      uint64_t end, const char *path);

/* One process more has it, or one less. */
void probed_files_use(struct probed_files *files, uint32_t at);
void probed_files_unuse(struct probed_files *files, uint32_t at);

/* What the parser says. The file's index; PROBED_FILES_MAX: it is not there any more. */
uint32_t probed_files_answer(struct probed_files *files, uint32_t number,
			     const struct memory_places *places);

/* From probes of all its processes to ones of each. */
void probed_files_split(struct probed_files *files, uint32_t at);
/* Fills probes, which are to be closed as probed_file's. False: they cannot be. */
bool probed_files_open_for(struct probed_files *files, uint32_t at, uint32_t tgid,
			   int probes[PROBED_FILE_PROBES]);
void probed_files_close(int probes[PROBED_FILE_PROBES]);

/* Asks for new ones; lets go of those that nobody has. */
void probed_files_ask(struct probed_files *files);
void probed_files_tidy(struct probed_files *files, int64_t now_ms);

uint32_t probed_files_now(const struct probed_files *files);

void probed_files_free(struct probed_files *files); /* NULL too */

#endif

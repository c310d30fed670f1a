/* SPDX-License-Identifier: Apache-2.0 */
/* The spool's directory: who may use it, its lock, its segments, and how far it has been sent.
 *
 * DIR belongs to the user that the agent runs as, and nobody else may enter it; neither it nor
 * anything in it is followed when it is a symbolic link. `lock` is held by flock(2) as long as an
 * agent uses it. `state` says how far the records have been handled: two slots of 512 bytes that
 * are written in turn, the intact one with the higher turn counts. */
#ifndef NODE_AGENT_SHIP_SPOOL_DIRECTORY_H
#define NODE_AGENT_SHIP_SPOOL_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

enum { SPOOL_SEGMENTS_MAX = 8192 };

struct spool_segment {
	uint64_t number, bytes;
};

/* How far, and what has to be told of the run whose records were handled last. */
struct spool_state {
	bool is_known;
	uint64_t segment, at; /* the first record that is not handled, or where the next would be */
	uint8_t run[16];
	uint64_t handled; /* of that run's samples: sent, refused or lost; compare frames' before */
	uint64_t lost;    /* of these: lost to the spool */
	uint64_t refused; /* cumulative, as farflame.lost.refused */
	uint64_t acknowledged; /* sequence number */
};

struct spool_directory {
	const char *path;
	int fd, lock_fd, state_fd; /* −1: not open */
	uint64_t turn;
	struct spool_segment *segments; /* by number */
	size_t count, capacity;
	uint64_t bytes;       /* of all segments */
	uint64_t newer_bytes; /* of segments that a newer version wrote: left alone */
};

/* path is borrowed. Closed and empty. */
void spool_directory_init(struct spool_directory *directory, const char *path);

/* Makes the last part of the path when it is missing. ERROR_OPTION: not a directory, a link, of
 * another owner, open to others, or nowhere; ERROR_CONFLICT: another agent uses it; ERROR_SYSTEM:
 * a full or read-only disk and the like, which may pass. state: as far as it is known on disk. */
bool spool_directory_open(struct spool_directory *directory, struct spool_state *state,
			  struct error *err);

/* It, or the file, was removed meanwhile. */
bool spool_directory_is_gone(const struct spool_directory *directory, int segment_fd);

/* −1: errno. A new one has its header written and is the last of the list. */
int spool_directory_new_segment(struct spool_directory *directory, uint64_t number);
int spool_directory_open_segment(const struct spool_directory *directory, uint64_t number);

/* The first segment's file goes, and its place in the list. */
void spool_directory_remove_first(struct spool_directory *directory);

/* False: errno. */
bool spool_directory_put_state(struct spool_directory *directory, const struct spool_state *state,
			       bool is_synced);

void spool_directory_close(struct spool_directory *directory);

#endif

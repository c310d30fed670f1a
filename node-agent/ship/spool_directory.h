/* SPDX-License-Identifier: Apache-2.0 */
/* The spool's directory: who may use it, its lock, its files, and how far they have been sent.
 *
 * DIR belongs to the user that the agent runs as, and nobody else may enter it; neither it nor
 * anything in it is followed when it is a symbolic link. `lock` is held by flock(2) as long as an
 * agent uses it. <number, 16 hex digits>.spool is a report (spool_record.h), the lowest number is
 * the oldest; one is written as `new` and renamed, so that a half one never has a number. Files of
 * other names are left alone. `state` says how far the reports have been handled: two slots of 512
 * bytes that are written in turn, in place, which a full disk does not hinder; the intact one with
 * the higher turn counts. */
#ifndef NODE_AGENT_SHIP_SPOOL_DIRECTORY_H
#define NODE_AGENT_SHIP_SPOOL_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/error.h"

enum { SPOOL_FILES_MAX = 65536 };

struct spool_file {
	uint64_t number, bytes;
};

/* How far, and what has to be told of the run whose reports were handled last. */
struct spool_state {
	bool is_known;
	uint64_t file, at; /* the first record that is not handled, or where the next would be */
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
	struct spool_file *files; /* by number */
	size_t count, capacity;
	size_t passed;                /* of these, at the front: handled, and still there */
	uint64_t bytes, passed_bytes; /* of those that wait, and of these; in whole blocks */
};

/* path is borrowed. Closed and empty. */
void spool_directory_init(struct spool_directory *directory, const char *path);

/* Makes the last part of the path when it is missing. ERROR_OPTION: not a directory, a link, of
 * another owner, open to others, or nowhere; ERROR_CONFLICT: another agent uses it; ERROR_SYSTEM:
 * a full or read-only disk and the like, which may pass. state: as far as it is known on disk. */
bool spool_directory_open(struct spool_directory *directory, struct spool_state *state,
			  struct error *err);

/* It was removed meanwhile, or all that is in it. */
bool spool_directory_is_gone(const struct spool_directory *directory);

/* What a file of that length takes: the disk gives whole blocks. */
uint64_t spool_directory_cost(uint64_t length);

/* A file of these two parts, the last of the list; in the kernel's hands, all of it or nothing.
 * False: errno. */
bool spool_directory_put(struct spool_directory *directory, uint64_t number, struct bytes head,
			 struct bytes body);
/* The newest so many are on the disk, and their names. False: errno. */
bool spool_directory_sync(const struct spool_directory *directory, size_t newest);

/* The oldest that waits. NULL: none does. */
const struct spool_file *spool_directory_first(const struct spool_directory *directory);
/* All of its bytes, instead of what content has. False: errno. */
bool spool_directory_read(const struct spool_directory *directory, const struct spool_file *file,
			  struct buffer *content);
/* It is handled; its file goes with spool_directory_remove_passed(). */
void spool_directory_pass_first(struct spool_directory *directory);
void spool_directory_remove_passed(struct spool_directory *directory);

/* False: errno. */
bool spool_directory_put_state(struct spool_directory *directory, const struct spool_state *state,
			       bool is_synced);

void spool_directory_close(struct spool_directory *directory);

#endif

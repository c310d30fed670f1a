/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the disk uploads take, and which of them make room: the folders of build-ids that
 * were not used for longest, whole. A folder's last use is the time of access of its files, which
 * is set here. Bytes are those that the disk has allocated. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SOURCES_UPLOAD_ROOM_H
#define SYMBOL_SERVER_SYMBOLIZE_SOURCES_UPLOAD_ROOM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"

enum { UPLOAD_FOLDERS_MAX = 50000 }; /* half of the modules there may be */

struct upload_usage {
	uint64_t bytes;
	uint32_t files; /* without their checksums */
	int64_t used_ms;
};

/* The files of that id made room for others, or were removed. Called with the room's lock. */
typedef void upload_gone_fn(void *context, const struct build_id *id);

struct upload_room {
	int directory;        /* of uploads; the owner's */
	uint64_t limit_bytes; /* of all; 0: none */
	pthread_mutex_t lock; /* of what follows, and while folders change */
	uint64_t bytes, receiving_bytes;
	uint32_t files, folders;
	uint64_t evicted_files, evicted_bytes; /* since the start */
	upload_gone_fn *gone;                  /* NULL: nobody asks */
	void *context;
};

/* Looks at what is there. */
void upload_room_init(struct upload_room *room, int directory, uint64_t limit_bytes);
void upload_room_release(struct upload_room *room);

/* Whether a file of so many bytes could have room, if others went. ERROR_LIMIT: it is larger than
 * all may be; ERROR_SYSTEM, ENOSPC: the disk has no room, nor would have without all uploads. */
bool upload_room_fits(struct upload_room *room, uint64_t bytes, struct error *err);
/* Room for bytes more of files being received, which are counted; others go for it. Errors as
 * above; ERROR_BUSY: what is being received takes it. */
bool upload_room_reserve(struct upload_room *room, uint64_t bytes, struct error *err);
void upload_room_unreserve(struct upload_room *room, uint64_t bytes);

/* What a build-id's folder has; all 0: it is not there. */
struct upload_usage upload_room_usage(int directory, const char *folder);

/* Around a change of a folder's files. */
struct upload_usage upload_room_lock(struct upload_room *room, const char *folder);
void upload_room_unlock(struct upload_room *room, const char *folder,
			const struct upload_usage *before);

/* The folder was used now. */
void upload_room_use(struct upload_room *room, const char *folder);

/* Removes the folder; what it had. */
struct upload_usage upload_room_remove(struct upload_room *room, const char *folder);

/* Calls fn for each build-id that has files. */
void upload_room_each(struct upload_room *room, upload_gone_fn *fn, void *context);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Files that were sent to us, one folder per build-id: the best executable, the best debug file, a
 * kallsyms text, a .dwp (for the program's id: it has none of its own), a dwz file. They complete
 * each other, cannot be had again, are kept while there is room (upload_room.h), and are on disk
 * before the answer. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SOURCES_UPLOADS_H
#define SYMBOL_SERVER_SYMBOLIZE_SOURCES_UPLOADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"
#include "symbol-server/symbolize/sources/upload_room.h"

enum upload_kind {
	UPLOAD_EXECUTABLE, /* code, but no debug information */
	UPLOAD_DEBUG,      /* debug information, with or without code */
	UPLOAD_KALLSYMS,
	UPLOAD_DWP,
	UPLOAD_ALT, /* what dwz moved out of several debug files */
	UPLOAD_KINDS
};

struct uploads;

/* cache_directory/uploads; what an earlier run left half received is removed. A file has at most
 * limit_bytes, all together disk_bytes on the disk; 0: no limit. */
struct uploads *uploads_open(const char *cache_directory, uint64_t limit_bytes, uint64_t disk_bytes,
			     struct error *err);
/* Before the first upload: who is to know of files that made room. */
void uploads_watch(struct uploads *uploads, upload_gone_fn *gone, void *context);
void uploads_close(struct uploads *uploads); /* NULL is fine */

struct upload_file; /* one being received */

/* expected: bytes it will have; 0: not known. What does not fit is refused before others go for it:
 * errors as of writing. */
struct upload_file *upload_file_open(struct uploads *uploads, uint64_t expected, struct error *err);
/* Pages of zeros take no room on the disk. ERROR_FORMAT: it begins
 * as nothing does that is kept; ERROR_LIMIT beyond limit_bytes or disk_bytes;
 * ERROR_BUSY: others take that room just now; ERROR_SYSTEM: disk, ENOSPC where it is full. */
bool upload_file_write(struct upload_file *file, const void *bytes, size_t length,
		       struct error *err);
/* Checks what came and keeps it when it is better than what is there, or when replaces (then
 * is_new). ERROR_CONFLICT: it has another build-id; ERROR_FORMAT: not an ELF with code or symbols
 * nor a kallsyms text, or a single .dwo. The file stays to be closed. */
bool upload_file_keep(struct upload_file *file, const struct build_id *id, bool replaces,
		      bool *is_new, struct error *err);
void upload_file_close(struct upload_file *file); /* removes what was not kept; NULL is fine */

/* Opens what there is of that id, which is thereby used; room ≥ UPLOAD_KINDS. Returns how many.
 * Each is compared with its checksum (upload_sums.h) once per run and change: one that is damaged
 * is logged, deleted and not among them. */
size_t uploads_open_files(struct uploads *uploads, const struct build_id *id, int *fds);
/* Whether there is any, without reading it. */
bool uploads_have(struct uploads *uploads, const struct build_id *id);
/* Its files are in use, though nobody opened them. */
void uploads_use(struct uploads *uploads, const struct build_id *id);
/* What there is of it. */
struct upload_usage uploads_usage(struct uploads *uploads, const struct build_id *id);
/* Removes all of it; what it was. */
struct upload_usage uploads_remove(struct uploads *uploads, const struct build_id *id);
/* Calls fn for each build-id that there are files of. */
void uploads_each(struct uploads *uploads, upload_gone_fn *fn, void *context);

struct uploads_counts {
	uint64_t bytes, files, limit_bytes;    /* now */
	uint64_t evicted_files, evicted_bytes; /* made room since the start */
	uint64_t damaged;                      /* files found so since the start */
};
void uploads_count(struct uploads *uploads, struct uploads_counts *out);

/* What an open file is, from its content, and what it is worth among its kind; for the check above
 * and for fuzzing. */
bool upload_sniff(int fd, const struct build_id *id, enum upload_kind *kind, unsigned *worth,
		  struct error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Files that were sent to us, one folder per build-id: the best executable, the best debug file, a
 * kallsyms text, a .dwp (for the program's id: it has none of its own), a dwz file. They complete
 * each other, cannot be had again, are kept, and are on disk before the answer. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SOURCES_UPLOADS_H
#define SYMBOL_SERVER_SYMBOLIZE_SOURCES_UPLOADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"

enum upload_kind {
	UPLOAD_EXECUTABLE, /* code, but no debug information */
	UPLOAD_DEBUG,      /* debug information, with or without code */
	UPLOAD_KALLSYMS,
	UPLOAD_DWP,
	UPLOAD_ALT, /* what dwz moved out of several debug files */
	UPLOAD_KINDS
};

struct uploads;

/* cache_directory/uploads; what an earlier run left half received is removed. */
struct uploads *uploads_open(const char *cache_directory, uint64_t limit_bytes, struct error *err);
void uploads_close(struct uploads *uploads); /* NULL is fine */

struct upload_file; /* one being received */

struct upload_file *upload_file_open(struct uploads *uploads, struct error *err);
/* ERROR_LIMIT beyond limit_bytes; ERROR_SYSTEM: disk. */
bool upload_file_write(struct upload_file *file, const void *bytes, size_t length,
		       struct error *err);
/* Checks what came and keeps it when it is better than what is there, or when replaces (then
 * is_new). ERROR_CONFLICT: it has another build-id; ERROR_FORMAT: not an ELF with code or symbols
 * nor a kallsyms text, or a single .dwo. The file stays to be closed. */
bool upload_file_keep(struct upload_file *file, const struct build_id *id, bool replaces,
		      bool *is_new, struct error *err);
void upload_file_close(struct upload_file *file); /* removes what was not kept; NULL is fine */

/* Opens what there is of that id; room ≥ UPLOAD_KINDS. Returns how many. */
size_t uploads_open_files(struct uploads *uploads, const struct build_id *id, int *fds);

/* What an open file is, from its content, and what it is worth among its kind; for the check above
 * and for fuzzing. */
bool upload_sniff(int fd, const struct build_id *id, enum upload_kind *kind, unsigned *worth,
		  struct error *err);

#endif

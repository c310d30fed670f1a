/* SPDX-License-Identifier: Apache-2.0 */
/* Which symbol files a directory tree has: by build-id, by name, and by fingerprint, so that what
 * did not change need not be read again. Made for a million files: 24 bytes, a name and an id each,
 * folders' paths once. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SOURCES_FILE_INDEX_H
#define SYMBOL_SERVER_SYMBOLIZE_SOURCES_FILE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/elf_image.h"

enum { FILE_INDEX_NONE = -1, FILE_GUID_BYTES = 16 };

/* What is in a file. */
enum {
	FILE_HAS_DEBUG_INFO = 1,
	FILE_HAS_SYMTAB = 2,
	FILE_HAS_DYNSYM = 4,
	FILE_HAS_CODE = 8,
	FILE_HAS_GNU_ID = 16, /* otherwise its id is an htlhash, or it has none */
	FILE_IS_SPLIT = 32,   /* .dwo or .dwp */
};

unsigned file_content(const struct elf_image *image);

struct file_view { /* its texts live until the index is changed */
	const char *folder, *name;
	struct build_id id; /* length 0: none */
	unsigned content;
};

struct file_index;

struct file_index *file_index_new(void); /* NULL: no memory */
void file_index_free(struct file_index *index);

/* The folder's number, or FILE_INDEX_NONE at a limit. */
int64_t file_index_add_folder(struct file_index *index, const char *path);
/* False: at a limit. id may be NULL. */
bool file_index_add(struct file_index *index, int64_t folder, const char *name,
		    const struct build_id *id, unsigned content, uint64_t fingerprint);
/* A file that is none of ours; its fingerprint is all that is remembered. */
bool file_index_add_other(struct file_index *index, uint64_t fingerprint);

/* Memory taken in advance goes back. */
void file_index_trim(struct file_index *index);

/* No more is added; what follows can be asked from now on. What can be asked at any time may be
 * asked meanwhile. */
bool file_index_seal(struct file_index *index);
bool file_index_has_other(const struct file_index *index, uint64_t fingerprint);
int64_t file_index_find(const struct file_index *index, uint64_t fingerprint);

/* At any time. The next one: with the same id, or with the same base name (only files without a
 * GNU build-id are found by name). */
int64_t file_index_find_id(const struct file_index *index, const struct build_id *id);
/* One whose id begins so. */
int64_t file_index_find_guid(const struct file_index *index, const uint8_t first[FILE_GUID_BYTES]);
int64_t file_index_next_id(const struct file_index *index, int64_t file);
int64_t file_index_find_name(const struct file_index *index, const char *base_name);
int64_t file_index_next_name(const struct file_index *index, int64_t file);

void file_index_view(const struct file_index *index, int64_t file, struct file_view *view);
size_t file_index_bytes(const struct file_index *index);

const char *file_base_name(const char *path);

#endif

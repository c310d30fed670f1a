/* SPDX-License-Identifier: Apache-2.0 */
/* --symbol-dir: which files below these directories have a build-id (or htlhash). A thread of its
 * own reads the trees, again when something was missed and at least every minute; files that did
 * not change are not opened again. Symbolic links are not followed while reading; the links of a
 * `.build-id` tree are, inside of their directory. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SYMBOL_DIRECTORIES_H
#define SYMBOL_SERVER_SYMBOLIZE_SYMBOL_DIRECTORIES_H

#include <stdbool.h>
#include <stddef.h>

#include "common/build_id.h"
#include "common/elf_image.h"
#include "common/error.h"

struct symbol_directories;

/* found is called from the thread for every id that is new since the scan before. */
struct symbol_directories *symbol_directories_start(const char *const *paths, size_t count,
						    void (*found)(void *context,
								  const struct build_id *id),
						    void *context, struct error *err);

/* Opens up to room files with that id, each checked again. Returns how many; the descriptors are
 * the caller's. Never waits for a scan. */
size_t symbol_directories_open(struct symbol_directories *directories, const struct build_id *id,
			       int *fds, size_t room);

/* Something was not there: look again soon. */
void symbol_directories_missed(struct symbol_directories *directories);

/* Have all been read at least once? */
bool symbol_directories_are_read(struct symbol_directories *directories);

void symbol_directories_stop(struct symbol_directories *directories); /* NULL is fine */

/* Is this open file the one of that id: by its GNU build-id, or by its htlhash? image: as read. */
bool symbol_file_has_id(int fd, const struct elf_image *image, const struct build_id *id);

#endif

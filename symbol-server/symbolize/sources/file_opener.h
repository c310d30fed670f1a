/* SPDX-License-Identifier: Apache-2.0 */
/* Opens files of one directory in a thread of its own, so that a file system that does not answer
 * holds up that thread and nobody else. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SOURCES_FILE_OPENER_H
#define SYMBOL_SERVER_SYMBOLIZE_SOURCES_FILE_OPENER_H

#include <stdbool.h>

#include "common/build_id.h"
#include "common/error.h"

enum { FILE_OPENER_WAIT_MS = 100 };

struct file_opener;

/* late: a file asked for before was opened after all, but nobody waited for it any more. */
struct file_opener *file_opener_start(const char *directory,
				      void (*late)(void *context, const struct build_id *id),
				      void *context, struct error *err);
/* Takes no longer than a moment: a thread that is held up is left to itself. */
void file_opener_stop(struct file_opener *opener); /* NULL is fine */

/* Below the directory, following links only inside of it: a regular file, and when id is not NULL
 * an ELF file of that id. -1: there is none, or the file system did not answer within
 * FILE_OPENER_WAIT_MS; the latter is known at once the next time. is_public: set to what
 * public_file_is() says of it; NULL: nobody asks. */
int file_opener_open(struct file_opener *opener, const char *path, const struct build_id *id,
		     bool *is_public);

bool file_opener_answers(struct file_opener *opener);

#endif

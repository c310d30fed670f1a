/* SPDX-License-Identifier: Apache-2.0 */
/* Strangers' debug files are converted by this program itself, executed anew: no privileges, few
 * system calls, limits by the files' size. A crash or a limit is a sentence, never the server's
 * end. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_WORKER_H
#define SYMBOL_SERVER_SYMBOLIZE_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/buffer.h"
#include "common/error.h"
#include "symbol-server/symbolize/symbol_table.h"

/* Raised when a conversion can succeed where it failed before: failures are then tried again. */
enum { SYMBOL_CONVERTER_VERSION = 3 };

enum { WORKER_TABLE_MAX = 512 << 20 }; /* bytes of a packed table */

/* Converts the files (DEBUG_INPUTS_MAX at most; their descriptors stay the caller's) and checks
 * what comes back: packed holds the table's bytes, the result is the table itself. NULL: ERROR_BUSY
 * when stop_fd became readable, ERROR_SYSTEM when no worker could be started, else the reason why
 * these files cannot be used. table_limit: bytes of memory the table may need. */
struct symbol_table *worker_convert(const int *fds, size_t count, bool names_only, int stop_fd,
				    size_t table_limit, struct buffer *packed, struct error *err);

/* What that file needs besides itself: appends the text for debug_needs_parse(). Fails as above. */
bool worker_needs(int fd, int stop_fd, struct buffer *text, struct error *err);

/* ---- any child of this program ---- */

struct worker_child {
	const char *const *arguments; /* from argv[1] on, NULL at the end */
	const char *const *environment;
	const int *fds; /* become 3, 4, 5 …; everything else is closed on exec */
	size_t fd_count;
	int stop_fd; /* readable: the child is killed */
	int64_t limit_ms;
};

/* Runs the child to its end. status as waitpid() has it. ERROR_BUSY: stopped; ERROR_LIMIT: out of
 * time; the child is gone in every case. */
bool worker_run(const struct worker_child *child, int *status, struct error *err);

enum { WORKER_FIRST_FD = 3, WORKER_FDS_MAX = 1032, WORKER_EXIT_SENTENCE = 3 };

/* `farflame-server` re-executes itself as the conversion worker: main() calls this first; when
 * argv[1] is the worker's it never returns. */
void symbol_worker_main(int argc, char **argv);

#endif

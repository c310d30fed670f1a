/* SPDX-License-Identifier: Apache-2.0 */
/* debuginfod servers: which of them has the file of a build-id. Door to libdebuginfod, which runs
 * in a child of its own: it is configured by environment variables, may hang, and can then be
 * killed. A server that is down is closed for a while; that says nothing about a build-id. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SYMBOL_SOURCES_H
#define SYMBOL_SERVER_SYMBOLIZE_SYMBOL_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"

#define SYMBOL_WORKER_CONVERT "--convert-symbols"
#define SYMBOL_WORKER_FETCH   "--fetch-symbols"

struct symbol_sources;

/* Servers in order of preference; http:// and https:// only (libdebuginfod would also read
 * file://). cache_directory/debuginfod holds what is being downloaded. ERROR_OPTION names a bad
 * URL. */
struct symbol_sources *symbol_sources_open(const char *const *urls, size_t count,
					   const char *cache_directory, struct error *err);

enum source_answer {
	SOURCE_FOUND,
	SOURCE_NOT_FOUND, /* every server was asked and none has it */
	SOURCE_DOWN, /* none has it, but not every server could be asked; try at *retry_at_ms */
	SOURCE_STOPPED,
};

/* Asks one server after the other, for the debug file and, where there is none, the executable.
 * FOUND: *fd is the verified file, *url (borrowed) who had it. Otherwise err has the sentence.
 * Thread-safe; times are unix milliseconds. */
enum source_answer symbol_sources_fetch(struct symbol_sources *sources, const struct build_id *id,
					int stop_fd, int *fd, const char **url,
					int64_t *retry_at_ms, struct error *err);

/* The downloaded file is not needed any more. */
void symbol_sources_forget(struct symbol_sources *sources, const struct build_id *id);

size_t symbol_sources_count(const struct symbol_sources *sources);
void symbol_sources_close(struct symbol_sources *sources); /* NULL is fine */

/* The child: never returns. */
void symbol_source_fetch_main(int argc, char **argv) __attribute__((noreturn));

#endif

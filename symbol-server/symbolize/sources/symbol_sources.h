/* SPDX-License-Identifier: Apache-2.0 */
/* debuginfod servers: which of them has the file of a build-id. Each question is asked by a child
 * process of its own, which has the network and no rights. A server that is down is closed for a
 * while; that says nothing about a build-id. Nothing here is asked by a query: threads that fetch
 * wait here, and nobody else. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SOURCES_SYMBOL_SOURCES_H
#define SYMBOL_SERVER_SYMBOLIZE_SOURCES_SYMBOL_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"

#define SYMBOL_WORKER_CONVERT "--convert-symbols"
#define SYMBOL_WORKER_FETCH   "--fetch-symbols"

struct symbol_sources;

enum { SOURCES_MAX = 32 };

/* Servers in order of preference; http:// and https:// only. Downloads are unlinked files in
 * cache_directory. ERROR_OPTION names a bad URL. */
struct symbol_sources *symbol_sources_open(const char *const *urls, size_t count,
					   const char *cache_directory, struct error *err);

/* Of one server, and of all of them together: name, what it means. */
#define SOURCE_ANSWERS(answer_)                                                                    \
	answer_(FOUND, found, "the file was downloaded and is what was asked for") answer_(        \
		NOT_FOUND, not_found, "it does not have it") answer_(WRONG_FILE, wrong_file,       \
								     "it sent something else")     \
		answer_(TOO_LARGE, too_large, "it has it, but larger than is downloaded") answer_( \
			DOWN, down,                                                                \
			"it did not answer, or with an error: says nothing about the module")      \
			answer_(CLOSED, closed, "not asked: it is down or stalls")                 \
				answer_(NO_ROOM, no_room,                                          \
					"our own disk or memory had no room for the file")         \
					answer_(STOPPED, stopped, "this server is stopping")

enum source_answer {
#define SOURCE_ANSWER_ENUM(upper_, lower_, meaning_) SOURCE_##upper_,
	SOURCE_ANSWERS(SOURCE_ANSWER_ENUM)
#undef SOURCE_ANSWER_ENUM
};

/* One server asked (or passed over) for one module. */
struct source_attempt {
	const char *source; /* its URL, without user and password */
	enum source_answer answer;
	uint64_t bytes; /* of body received */
	uint32_t ms;
	int64_t at_ms;        /* unix time of the question */
	const char *sentence; /* what was answered, for people; never empty */
};

struct source_question {
	const struct build_id *id;
	int stop_fd; /* readable: ends with SOURCE_STOPPED */
	/* Called once per server in the order they were asked, from the asking thread, with no lock
	 * held; what it gets is borrowed for the call. May be NULL. */
	void (*note)(void *context, const struct source_attempt *attempt);
	void *context;
};

struct source_result {
	int fd;          /* FOUND: the verified file, the caller's; else −1 */
	const char *url; /* borrowed: who had it, else who failed; NULL: nobody was asked */
	/* Unix time from when asking again is of use: of DOWN, NO_ROOM, and of FOUND where a server
	 * that may have a better file could not be asked; else INT64_MAX. */
	int64_t retry_at_ms;
	char sentence[200]; /* why it is not FOUND */
};

/* Asks one server after the other for the debug file and, where none has it, for the executable.
 * FOUND; else the most hopeful of what the servers said: DOWN or NO_ROOM (not every server could be
 * asked, or answered: nothing is known about the module; try at retry_at_ms), TOO_LARGE,
 * WRONG_FILE, NOT_FOUND (every server was asked and none has it), STOPPED; never CLOSED.
 * Thread-safe; blocks for as long as a download takes. */
enum source_answer symbol_sources_ask(struct symbol_sources *sources,
				      const struct source_question *question,
				      struct source_result *result);

/* is_back is called, from a thread of the sources and with no lock held, when a server that was
 * down or stalled answers again and modules were turned away meanwhile: every module whose last
 * answer was DOWN can be asked for at once. To be set before the first question. */
void symbol_sources_watch(struct symbol_sources *sources, void (*is_back)(void *context),
			  void *context);

/* How many threads that ask are of use: enough that stalled servers leave one for the others. */
unsigned symbol_sources_threads(const struct symbol_sources *sources);

/* A question about this module that a server could not answer before is asked again. */
void symbol_sources_forgive(struct symbol_sources *sources, const struct build_id *id);

struct source_download {
	char url[160];  /* without user and password */
	uint64_t bytes; /* that came so far */
	int64_t ms;
};

/* Is it being asked for at a server now? */
bool symbol_sources_download(struct symbol_sources *sources, const struct build_id *id,
			     struct source_download *download);

struct source_state {
	char url[160];     /* without user and password */
	bool is_closed;    /* down or stalled; not asked until closed_until_ms */
	unsigned failures; /* in a row */
	int64_t closed_until_ms;
	char sentence[200]; /* of the last failure; empty: none since it last answered */
	uint64_t questions, found, not_found, failed, turned_away, bytes;
};

/* Fills up to room states, in order; returns how many servers there are. */
size_t symbol_sources_states(struct symbol_sources *sources, struct source_state *states,
			     size_t room);

size_t symbol_sources_count(const struct symbol_sources *sources);
void symbol_sources_close(struct symbol_sources *sources); /* NULL is fine */

/* The child: never returns. */
void symbol_source_fetch_main(int argc, char **argv) __attribute__((noreturn));

#endif

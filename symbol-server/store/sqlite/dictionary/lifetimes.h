/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of the processes that a day's samples are of. A sample's context (sample_context.h)
 * names its process' lifetime only; one of each lifetime and hour has also what the process is: its
 * command line, user and so on are in the dictionary once, not once a thread. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_DICTIONARY_LIFETIMES_H
#define SYMBOL_SERVER_STORE_SQLITE_DICTIONARY_LIFETIMES_H

#include "symbol-server/store/sqlite/dictionary/catalog.h"
#include "symbol-server/store/sample_context.h"

struct lifetimes;

/* Looks at the dictionary's strings below that number. NULL: no memory. */
struct lifetimes *lifetimes_new(const struct catalog *catalog, uint32_t strings);
void lifetimes_free(struct lifetimes *lifetimes); /* NULL is fine */

/* The context with all that is known of its process: itself, or in out. Of a lifetime that nobody
 * told more of it is the pid. */
const char *lifetimes_join(const struct lifetimes *lifetimes, const char *context,
			   char out[CONTEXT_BYTES_MAX]);

/* Whether a context that was joined says more of its process than the pid. */
bool lifetime_is_told(const char *joined);

/* The string that tells of the context's process; 0: none, or the context itself does. */
uint32_t lifetimes_teller(const struct lifetimes *lifetimes, const char *context);
/* What a context says of its process, without all that it says of a thread. */
void lifetime_reduce(const char *context, char out[CONTEXT_BYTES_MAX]);

#endif

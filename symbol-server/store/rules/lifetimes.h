/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of the processes that samples are of. A sample's context (sample_context.h) names
 * its process' lifetime only; one of each lifetime and hour has also what the process is: its
 * command line, user and so on are kept once, not once a thread. */
#ifndef SYMBOL_SERVER_STORE_RULES_LIFETIMES_H
#define SYMBOL_SERVER_STORE_RULES_LIFETIMES_H

#include <stdint.h>

#include "symbol-server/store/sample_context.h"

struct lifetimes;

/* The context of a number, of those that were added. */
typedef const char *lifetimes_text_fn(const void *texts, uint32_t number);

/* text is asked for numbers below that one while there are lifetimes. NULL: no memory. */
struct lifetimes *lifetimes_new(lifetimes_text_fn *text, const void *texts, uint32_t numbers);
/* That context, if it tells of a lifetime that no one before it told of. Numbers are not 0. False:
 * no memory. */
bool lifetimes_add(struct lifetimes *lifetimes, uint32_t number);
void lifetimes_free(struct lifetimes *lifetimes); /* NULL is fine */

/* The context with all that is known of its process: itself, or in out. Of a lifetime that nobody
 * told more of it is the pid. Its program is the executable's base name where nobody told one: as
 * agents say where it is the same, and older ones of all. */
const char *lifetimes_join(const struct lifetimes *lifetimes, const char *context,
			   char out[CONTEXT_BYTES_MAX]);

/* Whether a context that was joined says more of its process than the pid. */
bool lifetime_is_told(const char *joined);

/* The number that tells of the context's process; 0: none, or the context itself does. */
uint32_t lifetimes_teller(const struct lifetimes *lifetimes, const char *context);
/* The lifetime that a context tells of, in the context. NULL: of none. */
const char *lifetime_of_teller(const char *context, size_t *length);
/* What a context says of its process, without all that it says of a thread. */
void lifetime_reduce(const char *context, char out[CONTEXT_BYTES_MAX]);

#endif

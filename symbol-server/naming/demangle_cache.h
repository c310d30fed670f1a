/* SPDX-License-Identifier: Apache-2.0 */
/* demangle() and demangle_signature() of names that were asked before: what a name is shown as
 * follows from its text alone, so that it stays true whatever table the name comes from. Kept by
 * the process up to a limit. */
#ifndef SYMBOL_SERVER_NAMING_DEMANGLE_CACHE_H
#define SYMBOL_SERVER_NAMING_DEMANGLE_CACHE_H

#include "common/arena.h"

struct demangled_name {
	const char *shown;     /* NULL: arena is full */
	const char *signature; /* NULL: shown says it all */
};

/* Texts that live as long as the process, or as arena and name where there is no room. */
struct demangled_name demangle_cached(const char *name, struct arena *arena);

#endif

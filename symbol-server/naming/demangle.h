/* SPDX-License-Identifier: Apache-2.0 */
/* Linkage names → what people call functions; C++ and Rust (legacy and v0). */
#ifndef SYMBOL_SERVER_NAMING_DEMANGLE_H
#define SYMBOL_SERVER_NAMING_DEMANGLE_H

#include "common/arena.h"

/* Demangled as `c++filt -p` prints it; compiler suffixes (.cold, .isra.0, .lto_priv.0 …) and symbol
 * versions left out. Returns a text in arena, or name itself. */
const char *demangle(const char *name, struct arena *arena);

/* The whole signature, as `c++filt` prints it: with parameters, a template's return type, the
 * hashes of Rust. It is another for each overload and instance, and one for what compilers make
 * several symbols of: a constructor's kinds, ".cold" parts. A text in arena; NULL: not mangled, or
 * no room. */
const char *demangle_signature(const char *name, struct arena *arena);

/* Of a demangled name, "ns::f<int>" → "ns::f": without template arguments. Returns a text in arena,
 * or name itself. */
const char *demangle_simple(const char *name, struct arena *arena);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Strangers' text → UTF-8 that every output format may carry. Pure. */
#ifndef SYMBOL_SERVER_INGEST_TEXTS_H
#define SYMBOL_SERVER_INGEST_TEXTS_H

#include "common/arena.h"
#include "symbol-server/ingest/wire.h"
#include "symbol-server/store/sample_batch.h"

/* The bytes themselves when they are UTF-8 (RFC 3629) without NUL; else a copy in the arena with
 * every invalid byte and NUL as U+FFFD. Control characters stay: each format escapes its own. The
 * arena's failed flag says when the copy did not fit; the text is then empty. */
struct text text_repair(struct arena *arena, struct wire bytes);
/* At most limit bytes of the text, cut between characters. */
struct text text_cut(struct text text, uint32_t limit);
bool text_is(struct text text, const char *other);
/* The part after the last '/'. */
struct text text_base_name(struct text path);
/* One that lives as long as the program. */
struct text text_of(const char *literal);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that asks the server where functions lie in a file that has no names of its own: one
 * file at a time, apart from reports and uploads, which never wait for it. */
#ifndef NODE_AGENT_SHIP_SYMBOL_FINDER_H
#define NODE_AGENT_SHIP_SYMBOL_FINDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"
#include "node-agent/network/network.h"
#include "node-agent/ship/symbol_list.h"

enum symbol_outcome {
	SYMBOLS_FOUND,   /* some */
	SYMBOLS_UNKNOWN, /* the server knows none of that file */
	SYMBOLS_LATER,   /* it was not reached, or said so */
	SYMBOLS_REFUSED, /* it does not answer this, or what it said is not an answer */
};

struct symbol_reply {
	struct build_id id;
	enum symbol_outcome outcome;
	int64_t retry_after_s;   /* LATER: as the server said; −1: nothing */
	struct symbol_list list; /* FOUND */
};

struct symbol_finder;

/* network is borrowed for the finder's life, as token_file, the one it was started with. */
struct symbol_finder *symbol_finder_start(struct network *network, const char *token_file,
					  struct error *err);
/* names: at most 64, borrowed for the finder's life. False: one is asked about, or its reply has
 * not been taken. Never waits, as the next. */
bool symbol_finder_ask(struct symbol_finder *finder, const struct build_id *id,
		       const char *const *names, size_t name_count);
/* False: none has come. */
bool symbol_finder_take(struct symbol_finder *finder, struct symbol_reply *reply);
/* After network_interrupt(), which ends what is under way; NULL too. False: its thread goes on by
 * itself. */
bool symbol_finder_stop(struct symbol_finder *finder);

#endif

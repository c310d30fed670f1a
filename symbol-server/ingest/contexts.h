/* SPDX-License-Identifier: Apache-2.0 */
/* A sample's attributes → its context (store/sample_context.h); equal ones share their text. */
#ifndef SYMBOL_SERVER_INGEST_CONTEXTS_H
#define SYMBOL_SERVER_INGEST_CONTEXTS_H

#include "symbol-server/ingest/dictionary.h"
#include "symbol-server/store/sample_context.h"

enum { CONTEXTS_KEPT = 1024 };

struct context_request { /* of one sample */
	struct text thread;
	uint32_t attributes[CONTEXT_ATTRIBUTES_MAX]; /* of the dictionary; others were not kept */
	unsigned count, dropped;
	unsigned of_process; /* of count */
};

struct contexts {                   /* zeroed: empty */
	struct context_entry *kept; /* by hash; the last one of each */
	uint64_t dropped;           /* attributes that found no room or whose keys are none */
	/* Of the resource whose samples come: which lifetime its process is, and what else is known
	 * of it, which the first sample has; "" where it does not say. */
	struct text lifetime, process;
	uint32_t resource;
};

/* Samples of another resource follow, whose attributes say what its process is; host tells apart
 * those of one pid. False: the arena is full. */
bool contexts_begin_resource(struct contexts *contexts, struct arena *arena,
			     const struct batch_label *attributes, uint32_t count,
			     struct text host);

/* Keeps an attribute that is not of the well-known ones. */
void context_request_add(struct context_request *request, const struct dictionary *dictionary,
			 uint32_t index);
/* False: the arena is full. Without attributes it is the thread's name. */
bool contexts_make(struct contexts *contexts, struct dictionary *dictionary,
		   const struct context_request *request, struct text *context);

#endif

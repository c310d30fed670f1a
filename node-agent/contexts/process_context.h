/* SPDX-License-Identifier: Apache-2.0 */
/* What a process publishes of itself: OpenTelemetry's process context, OTEP 4719 version 2, read
 * from its memory. A mapping named OTEL_CTX begins with
 *	char signature[8] "OTEL_CTX", u32 version, u32 payload_size, u64 published_at_ns (0: it is
 *	being written), u64 address of the payload, an OTLP Resource
 * and is the process' own: it may be gone, change, or say anything. */
#ifndef NODE_AGENT_CONTEXTS_PROCESS_CONTEXT_H
#define NODE_AGENT_CONTEXTS_PROCESS_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"

enum {
	PROCESS_CONTEXT_ATTRIBUTES_MAX = 32,
	PROCESS_CONTEXT_KEYS_MAX = 256,  /* OTEP 4947: an index is a byte */
	PROCESS_CONTEXT_KEY_MAX = 128,   /* bytes of a key; others are left out */
	PROCESS_CONTEXT_VALUE_MAX = 256, /* of a value, which is cut */
};

struct context_attribute {
	const char *key, *value;
};

struct process_context {
	uint64_t address; /* of the header */
	uint64_t published_at_ns;
	struct context_attribute attributes[PROCESS_CONTEXT_ATTRIBUTES_MAX];
	size_t attribute_count;
	/* threadlocal.*: */
	bool has_threads; /* its threads publish what they do, in a way that we know */
	const char *keys[PROCESS_CONTEXT_KEYS_MAX];
	size_t key_count;
	uint32_t cut; /* attributes that had no room, or keys that are none */
	struct arena arena;
};

/* directory: /proc/PID, whose memory is read by kernel/stranger_reader.h. False: it publishes none.
 */
bool process_context_find(int directory, uint64_t *address);

enum process_context_state {
	PROCESS_CONTEXT_NEW,   /* context is what it publishes now */
	PROCESS_CONTEXT_SAME,  /* as context has it already */
	PROCESS_CONTEXT_LATER, /* it is being written */
	PROCESS_CONTEXT_GONE,  /* not there, or not such a context; context is empty */
};

/* context: as the call before left it, or all zero but for address. force: also what seems to be
 * the same. */
enum process_context_state process_context_read(int directory, struct process_context *context,
						bool force);
void process_context_release(struct process_context *context);

/* Pure: fills context from a Resource's bytes. False: they are none. */
bool process_context_decode(struct process_context *context, const uint8_t *payload, size_t length);

#endif

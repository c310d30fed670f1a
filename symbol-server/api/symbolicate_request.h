/* SPDX-License-Identifier: Apache-2.0 */
/* The body of POST /symbolicate/v5, read and checked: JSON of strangers in, plain arrays out. */
#ifndef SYMBOL_SERVER_API_SYMBOLICATE_REQUEST_H
#define SYMBOL_SERVER_API_SYMBOLICATE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/error.h"

enum {
	SYMBOLICATE_JOBS = 10, /* as Mozilla's own server */
	SYMBOLICATE_MODULES = 20000,
	SYMBOLICATE_FRAMES = 100000,
	SYMBOLICATE_BODY_BYTES = 2 << 20,
};

struct symbolicate_module {
	const char *name, *id; /* as sent */
};

struct symbolicate_frame {
	int32_t module; /* of the job; -1: in none */
	int64_t offset; /* into the module; -1: unknown */
};

struct symbolicate_stack {
	uint32_t first, count; /* of the job's frames */
};

struct symbolicate_job {
	struct symbolicate_module *modules;
	struct symbolicate_stack *stacks;
	struct symbolicate_frame *frames;
	uint32_t module_count, stack_count, frame_count;
};

struct symbolicate_request {
	struct symbolicate_job jobs[SYMBOLICATE_JOBS];
	unsigned job_count;
};

/* {"jobs":[{"memoryMap":[[name,id]…],"stacks":[[[module,offset]…]…]}…]}, or one such job alone. All
 * in arena. ERROR_FORMAT: not JSON, of another shape, or more jobs; ERROR_LIMIT: more of the
 * others; ERROR_MEMORY. */
bool symbolicate_request_read(const void *bytes, size_t length, struct arena *arena,
			      struct symbolicate_request *out, struct error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks → a profile that go tool pprof opens: schema/formats/pprof.proto, gzip'd. Written from the
 * stacks themselves, not from a tree: nothing is cut, addresses and inlined calls stay. Pure. */
#ifndef SYMBOL_SERVER_FORMATS_PPROF_H
#define SYMBOL_SERVER_FORMATS_PPROF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol-server/formats/flame_formats.h"

enum { PPROF_SAMPLES_MAX = 8 << 20 };

struct pprof_location {
	uint64_t address;
	uint32_t module;                         /* FRAME_NO_MODULE none */
	const struct flame_frame *const *frames; /* innermost first */
	unsigned count;                          /* at least 1 */
};

struct pprof;

/* What answer says of modules is used from the start, its accounting at the end; tree may be NULL.
 * What can be told at once goes into out as it comes, compressed; the samples follow at the end.
 * All texts given are borrowed until the end. labels: the names of what each sample is labelled
 * with. NULL: no memory. */
struct pprof *pprof_new(const struct flame_answer *answer, const char *const *labels,
			unsigned label_count, struct buffer *out);
/* Its number; 0: memory or a limit is reached. */
uint32_t pprof_add_location(struct pprof *pprof, const struct pprof_location *location);
/* locations leaf first; equal ones with equal labels are one sample. false: memory or a limit. */
bool pprof_add_sample(struct pprof *pprof, const uint32_t *locations, size_t depth,
		      const char *const *label_values, uint64_t value, uint64_t samples);
/* Nothing can be added afterwards. */
bool pprof_finish(struct pprof *pprof);
void pprof_free(struct pprof *pprof); /* NULL is fine */

#endif

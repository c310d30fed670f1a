/* SPDX-License-Identifier: Apache-2.0 */
/* Java's frames in words (bpf/hotspot_frames.h) as frames with names: of compiled code one for each
 * call that was inlined. Methods and instructions of compiled code are read once while they are in
 * use, within bounds of bytes and time (runtimes/code_cache.h). A method or an nmethod that is gone
 * is declared: it never has another one's name, since words say which one they mean. */
#ifndef NODE_AGENT_RUNTIMES_HOTSPOT_CODES_H
#define NODE_AGENT_RUNTIMES_HOTSPOT_CODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node-agent/processes/process_key.h"
#include "node-agent/runtimes/hotspot_compiled.h"
#include "node-agent/runtimes/hotspot_layout.h"
#include "node-agent/runtimes/python_memory.h"

enum {
	HOTSPOT_CODES_BYTES = 3 << 20, /* as a rule: half of it methods, half instructions */
	HOTSPOT_STUB_BYTES = 128,      /* of a stub's name */
};

struct hotspot_codes_counters {
	uint64_t methods, compiled, stubs; /* read: methods, instructions of compiled code, … */
	uint64_t names_cut, lines_cut, calls_cut;
	uint64_t gone; /* another one was there: frames without a name */
	uint64_t unread;
	uint64_t refused;  /* were not read, by the bounds in time and bytes */
	uint64_t given_up; /* halves of caches */
	size_t bytes;      /* now */
};

struct hotspot_codes;

struct hotspot_codes *hotspot_codes_new(size_t limit_bytes);
void hotspot_codes_free(struct hotspot_codes *codes);

/* A stack begins: what was lent before is not used any more. */
void hotspot_codes_begin(struct hotspot_codes *codes);

struct hotspot_codes_process {
	struct process_key key;
	const struct python_memory *memory;
	const struct hotspot_layout *layout;
	uint64_t now_ns; /* of any clock that only goes forward */
	/* At the sample, and where it is now: as struct sample_event and struct hotspot_place have
	 * them. Once it has changed, a method may be another one, and what is not known of it by
	 * then cannot be read any more. Where there is no such count, methods are read again after
	 * some seconds, and one that came in place of another may have its name for so long. */
	uint64_t unloads, unloads_at;
};

struct hotspot_named {
	const char *name; /* Class.method, or a stub's own; NULL: it has none any more */
	const char *file; /* "": not known */
	uint32_t line;    /* 0: not known */
	const char *tier; /* "interpreted", "C1 1" … "C1 3", "C2", "native", "stub" */
};

/* words: the two of one frame. Fills up to HOTSPOT_CALLS_MAX, innermost first, one at least; texts
 * are lent until the next stack begins. */
size_t hotspot_codes_name(struct hotspot_codes *codes, const struct hotspot_codes_process *process,
			  const uint64_t words[2], struct hotspot_named named[HOTSPOT_CALLS_MAX]);

void hotspot_codes_counters(const struct hotspot_codes *codes, struct hotspot_codes_counters *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* One window in one process' allocators, on a thread of its own: putting probes there takes
 * milliseconds, taking them away a tenth of a second. */
#ifndef NODE_AGENT_ALLOCATIONS_ALLOCATION_WINDOW_H
#define NODE_AGENT_ALLOCATIONS_ALLOCATION_WINDOW_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "bpf/alloc.h"
#include "common/error.h"
#include "node-agent/allocations/probe_price.h"

struct window_probe {
	int file; /* borrowed while the window lasts */
	int program;
	uint64_t offset; /* in the file */
	bool is_hot;     /* malloc(): last there */
};

struct allocation_window {
	/* the order */
	uint32_t tgid;
	int windows_map, counts_map;
	uint64_t cost_max_ns; /* it ends when so much is spent; what its end costs comes on top */
	uint64_t stacks_max;  /* or so many are enough */
	uint64_t apart_ns;    /* from hit to hit, of its own time, as of the window before; 0: none */
	struct probe_price price_before; /* as of the window before; zeros: none */
	const struct probe_meter *meter; /* borrowed, the same */
	uint32_t *company; /* windows with probes where its hot one is, atomic; the same */
	struct alloc_window settings;
	uint32_t probe_count;
	struct window_probe probes[ALLOC_FUNCTIONS];
	/* the result, once is_done; apart_ns, too */
	struct probe_price price;
	bool has_failed;
	bool is_blurred; /* nobody knows exactly how long it was open */
	bool is_cut;     /* it was ended from outside */
	struct error why;
	struct alloc_window_counts counts; /* all of them */
	uint64_t
		open_used_ns; /* CPU time of the process while the window was open, less the cost */
	uint64_t open_cost_ns, cost_ns; /* of the open window; of all */
	uint64_t open_traps_ns;         /* of the open window's cost */
	uint64_t closed_used_ns;        /* of the process, in its life, when it was closed */
	uint64_t used_ns;               /* of the process, in its life, at the end */

	pthread_t thread;
	bool is_done, should_end; /* atomic */
	bool is_joined;
};

/* False: no thread; nothing has been done. Otherwise to be joined when is_done. */
bool allocation_window_start(struct allocation_window *window, struct error *err);
void allocation_window_end(struct allocation_window *window); /* soon */
void allocation_window_join(struct allocation_window *window);

#endif

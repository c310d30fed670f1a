/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a block is, told apart well enough for site_rates.h and at once: without unwinding. */
#ifndef NODE_AGENT_MALLOC_CALL_PLACE_H
#define NODE_AGENT_MALLOC_CALL_PLACE_H

#include <stdint.h>

/* Where the program's own code is. Until then, or where that is not known, callers alone count. */
void call_place_init(void);

/* from: into whom the entry point returns, or if that is not the program's own code (operator new
 * says little of who wants it) what looks like the next caller that is; and how deep in the stack
 * that is. thread: an address of the thread's own, so that threads agree. */
uintptr_t call_place(uintptr_t from, uintptr_t thread);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* File descriptors that only have to stay open: events of threads that write into another's ring.
 */
#ifndef NODE_AGENT_CAPTURE_DESCRIPTORS_H
#define NODE_AGENT_CAPTURE_DESCRIPTORS_H

#include <stddef.h>

#include "common/error.h"

struct descriptors { /* all zero: none */
	int *fds;
	size_t count, room;
};

/* Takes it; on failure it stays the caller's. */
bool descriptors_add(struct descriptors *descriptors, int fd, struct error *err);
void descriptors_release(struct descriptors *descriptors); /* closes all */

#endif

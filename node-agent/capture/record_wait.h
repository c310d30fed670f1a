/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for records of the kernel: until a ring of samples fills, a process event comes after a
 * calm time, another part's descriptor is readable, or it is time to look at the rings anyway. */
#ifndef NODE_AGENT_CAPTURE_RECORD_WAIT_H
#define NODE_AGENT_CAPTURE_RECORD_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct record_wait {
	int epoll_fd;
	int events_fd, watched_fd; /* borrowed */
	bool is_armed;             /* the next process event ends the wait */
	bool is_busy;              /* processes come and go: it is short */
};

/* Must be called before anything else; nothing to be done when it is never opened. */
void record_wait_init(struct record_wait *wait);
/* rings_when: EPOLLIN, with EPOLLET when nobody quiets the descriptor. Descriptors are borrowed. */
bool record_wait_open(struct record_wait *wait, int rings_fd, uint32_t rings_when, int events_fd,
		      struct error *err);
void record_wait_close(struct record_wait *wait);

/* At most timeout_ms (< 0: as long as it takes) and 200 ms, while busy 20. */
bool record_wait_begin(struct record_wait *wait, int timeout_ms, struct error *err);
/* Once all has been read. is_busy: process events came or are left. */
bool record_wait_end(struct record_wait *wait, bool is_busy, struct error *err);

/* See capture_watch(). */
void record_wait_watch(struct record_wait *wait, int fd);

#endif

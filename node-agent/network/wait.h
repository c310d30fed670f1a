/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a socket without getting lost: a limit per step, one for the whole, and a descriptor
 * that ends every wait at once. */
#ifndef NODE_AGENT_NETWORK_WAIT_H
#define NODE_AGENT_NETWORK_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/error.h"

struct wait_limits {
	int step_ms;         /* longest silence of the other side */
	int64_t deadline_ms; /* of the whole exchange, on monotonic_ms()'s clock; 0 = none */
	int interrupt_fd;    /* readable: stop waiting (an eventfd); −1 = none */
};

/* events as of poll(2). False: ERROR_REMOTE with os_error ETIMEDOUT when a limit
 * passed, ERROR_BUSY when interrupted. what: what is waited for, for the sentence. */
bool wait_for_descriptor(int fd, short events, const struct wait_limits *limits, const char *what,
			 struct error *err);

#endif

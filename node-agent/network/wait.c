/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/network/wait.h"

#include <errno.h>
#include <poll.h>

bool wait_for_descriptor(int fd, short events, const struct wait_limits *limits, const char *what,
			 struct error *err)
{
	int64_t until = monotonic_ms() + limits->step_ms;

	if (limits->deadline_ms && until > limits->deadline_ms)
		until = limits->deadline_ms;
	for (;;) {
		struct pollfd polls[2] = {
			{.fd = fd, .events = events},
			{.fd = limits->interrupt_fd, .events = POLLIN},
		};
		int64_t left = until - monotonic_ms();
		int ready = poll(polls, 2, left > 0 ? (int)left : 0);

		if (ready < 0 && errno != EINTR)
			return error_set_system(err, errno, "wait while %s", what);
		if (ready > 0 && polls[1].revents)
			return error_set(err, ERROR_BUSY, "stopped while %s", what);
		if (ready > 0 && polls[0].revents)
			return true;
		if (left <= 0) {
			error_set(err, ERROR_REMOTE, "no progress in time while %s", what);
			if (err)
				err->os_error = ETIMEDOUT;
			return false;
		}
	}
}

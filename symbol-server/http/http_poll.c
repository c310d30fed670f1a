/* SPDX-License-Identifier: Apache-2.0 */
/* libmicrohttpd asks epoll for 128 events at a time and asks again as long as it gets so many: with
 * the same timeout, before it does anything with those that it has (MHD_epoll() in
 * src/microhttpd/daemon.c, 0.9.75 and all others that were read). When exactly 128 have come, or
 * 256, a thread so waits for up to HTTP_IDLE_S with requests in its hands: seen when 1 000
 * connections were closed at once. This takes the place of the C library's function in the whole
 * program: who has just got all that there was room for is not made to wait for more. */
#include <stddef.h>
#include <sys/epoll.h>

static _Thread_local int full = -1; /* the descriptor of which the last answer had no room left */

int epoll_wait(int fd, struct epoll_event *events, int room, int timeout_ms)
{
	int count = epoll_pwait(fd, events, room, fd == full ? 0 : timeout_ms, NULL);

	full = count == room ? fd : -1;
	return count;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* libmicrohttpd's threads do not wait for more with as many events in hand as they have room for.
 */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/check.h"

enum { ROOM = 4 };

static int ready_fd(int epoll)
{
	int fd = eventfd(1, EFD_CLOEXEC);
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};

	CHECK(fd >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
	return fd;
}

int main(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), other = epoll_create1(EPOLL_CLOEXEC),
	    fds[2 * ROOM];
	struct epoll_event events[ROOM];
	int64_t begin = monotonic_ms();

	for (int i = 0; i < 2 * ROOM; i++)
		fds[i] = ready_fd(epoll);
	CHECK_NUMBER(epoll_wait(epoll, events, ROOM, 20000), ROOM);
	CHECK_NUMBER(epoll_wait(epoll, events, ROOM, 20000), ROOM);
	/* All are known now, to a caller who asks for more before he looks at them. */
	CHECK_NUMBER(epoll_wait(epoll, events, ROOM, 20000), 0);
	CHECK(monotonic_ms() - begin < 10000);
	/* Who has none waits as long as he said, and so does who asks of another. */
	begin = monotonic_ms();
	CHECK_NUMBER(epoll_wait(epoll, events, ROOM, 50), 0);
	CHECK(monotonic_ms() - begin >= 50);
	for (int i = 0; i < ROOM; i++)
		CHECK(write(fds[i], &(uint64_t){1}, sizeof(uint64_t)) == sizeof(uint64_t));
	CHECK_NUMBER(epoll_wait(epoll, events, ROOM, 20000), ROOM);
	begin = monotonic_ms();
	CHECK_NUMBER(epoll_wait(other, events, ROOM, 50), 0);
	CHECK(monotonic_ms() - begin >= 50);
	for (int i = 0; i < 2 * ROOM; i++)
		close(fds[i]);
	close(epoll);
	close(other);
	return checks_done();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/record_wait.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "tests/check.h"

static struct record_wait waiting;
static int rings, events, other;

static void say(int fd)
{
	CHECK_NUMBER(eventfd_write(fd, 1), 0);
}

static void quiet(int fd)
{
	eventfd_t value;

	CHECK_NUMBER(eventfd_read(fd, &value), 0);
}

static long waited_ms(int timeout_ms)
{
	struct timespec before, after;

	clock_gettime(CLOCK_MONOTONIC, &before);
	CHECK(record_wait_begin(&waiting, timeout_ms, NULL));
	clock_gettime(CLOCK_MONOTONIC, &after);
	return (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
}

int main(void)
{
	rings = eventfd(0, EFD_CLOEXEC);
	events = eventfd(0, EFD_CLOEXEC);
	other = eventfd(0, EFD_CLOEXEC);
	record_wait_init(&waiting);
	record_wait_close(&waiting);
	CHECK(record_wait_open(&waiting, rings, EPOLLIN, events, NULL));

	CHECK(waited_ms(0) < 100);
	CHECK(waited_ms(60) >= 59);
	CHECK(waited_ms(-1) >= 190); /* never for ever */
	say(rings);
	CHECK(waited_ms(10000) < 190);
	quiet(rings);

	/* process events end the wait once, also when nobody has read them; after a calm time again
	 */
	say(events);
	CHECK(waited_ms(10000) < 190);
	CHECK(record_wait_end(&waiting, true, NULL));
	CHECK(waited_ms(10000) >= 19); /* a short one, while they come */
	CHECK(waited_ms(5) >= 4);
	CHECK(record_wait_end(&waiting, true, NULL));
	quiet(events);
	CHECK(record_wait_end(&waiting, false, NULL));
	CHECK(waited_ms(100) >= 99);
	say(events);
	CHECK(waited_ms(10000) < 190);

	/* another's descriptor, which is closed and opened again with the same number */
	record_wait_watch(&waiting, other);
	record_wait_watch(&waiting, other);
	say(other);
	CHECK(waited_ms(10000) < 190);
	CHECK_NUMBER(close(other), 0);
	CHECK_NUMBER(eventfd(1, EFD_CLOEXEC), other);
	CHECK(waited_ms(60) >= 59);
	record_wait_watch(&waiting, other);
	CHECK(waited_ms(10000) < 190);
	record_wait_watch(&waiting, -1);
	CHECK(waited_ms(60) >= 59);
	record_wait_close(&waiting);
	return checks_done();
}

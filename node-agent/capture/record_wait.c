/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/record_wait.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
	CALM_MS = 200, /* how often the rings are looked at when nothing happens */
	BUSY_MS = 20,  /* processes that live shortly are met alive */
};

static bool set(struct record_wait *wait, int operation, int fd, uint32_t when, struct error *err)
{
	struct epoll_event event = {.events = when, .data.fd = fd};

	if (epoll_ctl(wait->epoll_fd, operation, fd, &event) != 0)
		return error_set_system(err, errno, "watch descriptor");
	return true;
}

void record_wait_init(struct record_wait *wait)
{
	*wait = (struct record_wait){.epoll_fd = -1, .events_fd = -1, .watched_fd = -1};
}

bool record_wait_open(struct record_wait *wait, int rings_fd, uint32_t rings_when, int events_fd,
		      struct error *err)
{
	wait->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (wait->epoll_fd < 0)
		return error_set_system(err, errno, "epoll");
	wait->events_fd = events_fd;
	wait->is_armed = true;
	return set(wait, EPOLL_CTL_ADD, rings_fd, rings_when, err) &&
	       set(wait, EPOLL_CTL_ADD, events_fd, EPOLLIN | EPOLLONESHOT, err);
}

void record_wait_close(struct record_wait *wait)
{
	if (wait->epoll_fd >= 0)
		close(wait->epoll_fd);
	record_wait_init(wait);
}

bool record_wait_begin(struct record_wait *wait, int timeout_ms, struct error *err)
{
	int limit_ms = wait->is_busy ? BUSY_MS : CALM_MS, count;
	struct epoll_event ready[3];

	if (timeout_ms >= 0 && timeout_ms < limit_ms)
		limit_ms = timeout_ms;
	count = epoll_wait(wait->epoll_fd, ready, 3, limit_ms);
	if (count < 0 && errno != EINTR)
		return error_set_system(err, errno, "wait for samples");
	for (int i = 0; i < count; i++)
		if (ready[i].data.fd == wait->events_fd)
			wait->is_armed = false;
	return true;
}

/* Process events end the wait once; then it is short anyway until it is calm again. */
bool record_wait_end(struct record_wait *wait, bool is_busy, struct error *err)
{
	wait->is_busy = is_busy;
	if (is_busy || wait->is_armed)
		return true;
	wait->is_armed = true;
	return set(wait, EPOLL_CTL_MOD, wait->events_fd, EPOLLIN | EPOLLONESHOT, err);
}

void record_wait_watch(struct record_wait *wait, int fd)
{
	/* One that was closed has left by itself; another may have its number by now. */
	if (wait->watched_fd >= 0 && wait->watched_fd != fd)
		epoll_ctl(wait->epoll_fd, EPOLL_CTL_DEL, wait->watched_fd, NULL);
	wait->watched_fd = fd;
	if (fd >= 0 && !set(wait, EPOLL_CTL_ADD, fd, EPOLLIN, NULL) && errno != EEXIST)
		wait->watched_fd = -1;
}

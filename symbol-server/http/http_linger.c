/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/http/http_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"

enum { LINGER_MAX = 256, LINGER_MS = 5000, LINGER_BYTES = 64 << 20, LINGER_ROUND = 1 << 20 };

struct http_linger {
	pthread_mutex_t lock;
	unsigned count;
	struct lingering {
		int fd;
		int64_t until_ms;
		size_t bytes;
	} items[LINGER_MAX];
};

struct http_linger *http_linger_new(void)
{
	struct http_linger *linger = calloc(1, sizeof(*linger));

	if (linger)
		pthread_mutex_init(&linger->lock, NULL);
	return linger;
}

/* With all places taken nothing happens: that client may see a reset instead of our sentence. */
void http_linger_add(struct http_linger *linger, int fd)
{
	int own;

	pthread_mutex_lock(&linger->lock);
	own = linger->count < LINGER_MAX ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
	if (own >= 0)
		linger->items[linger->count++] =
			(struct lingering){.fd = own, .until_ms = monotonic_ms() + LINGER_MS};
	pthread_mutex_unlock(&linger->lock);
}

unsigned http_linger_poll_fds(struct http_linger *linger, struct pollfd *fds, unsigned room)
{
	unsigned count;

	pthread_mutex_lock(&linger->lock);
	for (count = 0; count < linger->count && count < room; count++)
		fds[count] = (struct pollfd){.fd = linger->items[count].fd, .events = POLLIN};
	pthread_mutex_unlock(&linger->lock);
	return count;
}

/* Reads what is there; false when the connection is over or has had its share. */
static bool item_read(struct lingering *item)
{
	static char scrap[64 << 10]; /* one thread calls this; nobody looks at the bytes */
	size_t round = 0;

	while (round < LINGER_ROUND) {
		ssize_t got = recv(item->fd, scrap, sizeof(scrap), MSG_DONTWAIT);

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return monotonic_ms() < item->until_ms;
		if (got <= 0)
			return false;
		round += (size_t)got;
	}
	item->bytes += round;
	return item->bytes < LINGER_BYTES && monotonic_ms() < item->until_ms;
}

void http_linger_read(struct http_linger *linger)
{
	pthread_mutex_lock(&linger->lock);
	for (unsigned i = 0; i < linger->count;) {
		if (item_read(&linger->items[i])) {
			i++;
			continue;
		}
		close(linger->items[i].fd);
		linger->items[i] = linger->items[--linger->count];
	}
	pthread_mutex_unlock(&linger->lock);
}

void http_linger_free(struct http_linger *linger)
{
	if (!linger)
		return;
	for (unsigned i = 0; i < linger->count; i++)
		close(linger->items[i].fd);
	pthread_mutex_destroy(&linger->lock);
	free(linger);
}

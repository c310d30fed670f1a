/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/http/http_private.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"

enum { KEEPER_MS = 500, KEEPER_FDS = 257 };

int64_t http_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* shutdown() and not close(): the descriptor is libmicrohttpd's, which sees the end and cleans up.
 */
static void close_slow(struct http_connections *connections)
{
	int64_t now = http_now_ms();

	pthread_mutex_lock(&connections->lock);
	for (struct http_connection *at = connections->first; at; at = at->next) {
		if (!at->deadline_ms || now < at->deadline_ms)
			continue;
		at->deadline_ms = 0;
		if (at->in_body) {
			connections->slow_bodies++;
			log_info("slow request body, connection closed", "fd=%d", at->fd);
		}
		shutdown(at->fd, SHUT_RDWR);
	}
	pthread_mutex_unlock(&connections->lock);
}

static void *keep(void *context)
{
	struct http_connections *connections = context;
	struct pollfd fds[KEEPER_FDS];
	int64_t next = http_now_ms() + KEEPER_MS;
	bool is_stopping = false;

	while (!is_stopping) {
		unsigned count = http_linger_poll_fds(connections->linger, fds + 1, KEEPER_FDS - 1);
		uint64_t events;

		fds[0] = (struct pollfd){.fd = connections->wake_fd, .events = POLLIN};
		poll(fds, count + 1, KEEPER_MS);
		if (fds[0].revents && read(connections->wake_fd, &events, sizeof(events)) < 0 &&
		    errno != EAGAIN)
			break;
		http_linger_read(connections->linger);
		if (http_now_ms() >= next) {
			close_slow(connections);
			next = http_now_ms() + KEEPER_MS;
		}
		pthread_mutex_lock(&connections->lock);
		is_stopping = connections->is_stopping;
		pthread_mutex_unlock(&connections->lock);
	}
	return NULL;
}

bool http_connections_start(struct http_connections *connections, struct error *err)
{
	int failed;

	pthread_mutex_init(&connections->lock, NULL);
	connections->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (connections->wake_fd < 0)
		return error_set_system(err, errno, "eventfd");
	connections->linger = http_linger_new();
	if (!connections->linger)
		return error_set(err, ERROR_MEMORY, "out of memory");
	failed = pthread_create(&connections->keeper, NULL, keep, connections);
	if (failed)
		return error_set_system(err, failed, "start a thread");
	connections->has_keeper = true;
	return true;
}

void http_connections_stop(struct http_connections *connections)
{
	uint64_t one = 1;

	if (connections->has_keeper) {
		pthread_mutex_lock(&connections->lock);
		connections->is_stopping = true;
		pthread_mutex_unlock(&connections->lock);
		if (write(connections->wake_fd, &one, sizeof(one)) < 0)
			log_debug("eventfd", "errno=%d", errno);
		pthread_join(connections->keeper, NULL);
	}
	http_linger_free(connections->linger);
	if (connections->wake_fd >= 0)
		close(connections->wake_fd);
	pthread_mutex_destroy(&connections->lock);
}

static void connection_add(struct http_connections *connections, int fd, void **record)
{
	struct http_connection *added = calloc(1, sizeof(*added));

	*record = added;
	if (!added)
		return;
	added->fd = fd;
	added->deadline_ms = http_now_ms() + HTTP_IDLE_S * 1000;
	pthread_mutex_lock(&connections->lock);
	added->next = connections->first;
	added->link = &connections->first;
	if (added->next)
		added->next->link = &added->next;
	connections->first = added;
	connections->now++;
	connections->total++;
	pthread_mutex_unlock(&connections->lock);
}

static void connection_remove(struct http_connections *connections, void **record)
{
	struct http_connection *removed = *record;

	if (!removed)
		return;
	pthread_mutex_lock(&connections->lock);
	*removed->link = removed->next;
	if (removed->next)
		removed->next->link = removed->link;
	connections->now--;
	pthread_mutex_unlock(&connections->lock);
	free(removed);
	*record = NULL;
}

void http_connections_notify(void *context, struct MHD_Connection *connection, void **record,
			     enum MHD_ConnectionNotificationCode what)
{
	struct http_server *server = context;
	const union MHD_ConnectionInfo *info;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		connection_remove(&server->connections, record);
		return;
	}
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	if (info)
		connection_add(&server->connections, info->connect_fd, record);
}

void http_connection_allow(struct http_server *server, struct http_connection *record, unsigned s,
			   bool in_body)
{
	if (!record)
		return;
	pthread_mutex_lock(&server->connections.lock);
	record->deadline_ms = s ? http_now_ms() + (int64_t)s * 1000 : 0;
	record->in_body = in_body;
	record->window_bytes = 0;
	pthread_mutex_unlock(&server->connections.lock);
}

void http_connection_progress(struct http_server *server, struct http_connection *record,
			      size_t bytes)
{
	if (!record)
		return;
	/* only this connection's own thread touches window_bytes while a body comes in */
	record->window_bytes += bytes;
	if (record->window_bytes >= HTTP_PROGRESS_BYTES)
		http_connection_allow(server, record, server->options.slow_body_s, true);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/http/http_private.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/keyed_hash.h"
#include "common/log.h"

enum {
	KEEPER_MS = 500,
	KEEPER_FDS = 257,
	STALLED_MS = 2000,
	STALLED_KNOWN_MS = 10000,
	SHARES = 8,     /* of the places: what one address keeps when it gets narrow */
	LOOKED_AT = 64, /* idle ones, for one of an address with many */
};

static void join(struct http_connections *connections, struct http_connection *record,
		 enum http_standing standing)
{
	record->standing = standing;
	connections->counts[standing]++;
	TAILQ_INSERT_TAIL(&connections->lists[standing], record, link);
}

static void leave(struct http_connections *connections, struct http_connection *record)
{
	connections->counts[record->standing]--;
	TAILQ_REMOVE(&connections->lists[record->standing], record, link);
}

/* shutdown() and not close(): the descriptor is libmicrohttpd's, which sees the end and cleans up.
 */
static void close_for(struct http_connections *connections, struct http_connection *record,
		      enum http_closing reason)
{
	connections->closed[reason]++;
	if (reason == HTTP_CLOSED_slow_body)
		log_info("slow request body, connection closed", "fd=%d", record->fd);
	connections->by_address[record->address]--;
	leave(connections, record);
	join(connections, record, HTTP_LEAVING);
	shutdown(record->fd, SHUT_RDWR);
}

/* While memory is scarce a body has to get on. */
static bool is_stalled(const struct http_connection *record, int64_t now)
{
	int64_t patience_ms = record->standing == HTTP_KNOWN ? STALLED_KNOWN_MS : STALLED_MS;

	return record->arriving && now - record->moved_ms > patience_ms;
}

static void close_slow(struct http_server *server)
{
	struct http_connections *connections = &server->connections;
	bool is_pressed = http_memory_is_pressed(server);
	struct http_connection *at, *next;
	int64_t now = monotonic_ms();

	pthread_mutex_lock(&connections->lock);
	for (int standing = 0; standing < HTTP_LEAVING; standing++)
		for (at = TAILQ_FIRST(&connections->lists[standing]); at; at = next) {
			next = TAILQ_NEXT(at, link);
			if (at->deadline_ms && now >= at->deadline_ms)
				close_for(connections, at, at->waits_for);
			else if (at->deadline_ms && is_pressed && is_stalled(at, now))
				close_for(connections, at, HTTP_CLOSED_memory);
		}
	pthread_mutex_unlock(&connections->lock);
}

/* One that is idle, of an address that has more than its share if there are such: many may come
 * from one address, through a proxy, as long as there is room. */
static struct http_connection *longest_idle(struct http_connections *connections,
					    enum http_standing standing)
{
	struct http_connection *found = NULL, *at;
	unsigned looked = 0;

	TAILQ_FOREACH(at, &connections->lists[standing], link)
	{
		if (!at->deadline_ms)
			continue;
		if (!found)
			found = at;
		if (connections->by_address[at->address] > connections->most / SHARES)
			return at;
		if (++looked == LOOKED_AT)
			break;
	}
	return found;
}

/* Strangers go before those that are known, unless these have all but their places left. */
static void make_room(struct http_connections *connections)
{
	unsigned known = connections->counts[HTTP_KNOWN];
	bool is_known_first = known > connections->most - connections->most / SHARES;
	struct http_connection *found;

	if (known + connections->counts[HTTP_STRANGER] < connections->most)
		return;
	found = longest_idle(connections, is_known_first ? HTTP_KNOWN : HTTP_STRANGER);
	if (!found)
		found = longest_idle(connections, is_known_first ? HTTP_STRANGER : HTTP_KNOWN);
	if (found)
		close_for(connections, found, HTTP_CLOSED_crowded);
}

static void *keep(void *context)
{
	struct http_server *server = context;
	struct http_connections *connections = &server->connections;
	struct pollfd fds[KEEPER_FDS];
	int64_t next = monotonic_ms() + KEEPER_MS;
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
		if (monotonic_ms() >= next) {
			close_slow(server);
			next = monotonic_ms() + KEEPER_MS;
		}
		pthread_mutex_lock(&connections->lock);
		is_stopping = connections->is_stopping;
		pthread_mutex_unlock(&connections->lock);
	}
	return NULL;
}

bool http_connections_start(struct http_server *server, unsigned most, struct error *err)
{
	struct http_connections *connections = &server->connections;
	int failed;

	pthread_mutex_init(&connections->lock, NULL);
	connections->most = most;
	for (int i = 0; i < HTTP_STANDINGS; i++)
		TAILQ_INIT(&connections->lists[i]);
	connections->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (connections->wake_fd < 0)
		return error_set_system(err, errno, "eventfd");
	connections->linger = http_linger_new();
	if (!connections->linger)
		return error_set(err, ERROR_MEMORY, "out of memory");
	failed = pthread_create(&connections->keeper, NULL, keep, server);
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

/* IPv6 networks have 64 bits; an IPv4 address in IPv6's form is that one. */
static unsigned address_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	const struct sockaddr *address = info ? info->client_addr : NULL;
	const struct in6_addr *in6;

	if (address && address->sa_family == AF_INET)
		return keyed_hash(&((const struct sockaddr_in *)address)->sin_addr, 4, 0) %
		       HTTP_ADDRESSES;
	if (!address || address->sa_family != AF_INET6)
		return 0;
	in6 = &((const struct sockaddr_in6 *)address)->sin6_addr;
	return keyed_hash(in6->s6_addr + (IN6_IS_ADDR_V4MAPPED(in6) ? 12 : 0),
			  IN6_IS_ADDR_V4MAPPED(in6) ? 4 : 8, 0) %
	       HTTP_ADDRESSES;
}

static void connection_add(struct http_connections *connections, int fd, unsigned address,
			   void **record)
{
	struct http_connection *added = calloc(1, sizeof(*added));

	*record = added;
	if (!added)
		return;
	added->fd = fd;
	added->address = address;
	added->moved_ms = monotonic_ms();
	added->deadline_ms = added->moved_ms + HTTP_HEADERS_S * 1000;
	added->waits_for = HTTP_CLOSED_headers;
	pthread_mutex_lock(&connections->lock);
	make_room(connections);
	join(connections, added, HTTP_STRANGER);
	connections->by_address[address]++;
	connections->total++;
	pthread_mutex_unlock(&connections->lock);
}

static void connection_remove(struct http_connections *connections, void **record)
{
	struct http_connection *removed = *record;

	if (!removed)
		return;
	pthread_mutex_lock(&connections->lock);
	if (removed->standing != HTTP_LEAVING)
		connections->by_address[removed->address]--;
	leave(connections, removed);
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
		connection_add(&server->connections, info->connect_fd, address_of(connection),
			       record);
}

/* With the lock. */
static void move(struct http_connections *connections, struct http_connection *record)
{
	record->moved_ms = monotonic_ms();
	record->window_bytes = 0;
	TAILQ_REMOVE(&connections->lists[record->standing], record, link);
	TAILQ_INSERT_TAIL(&connections->lists[record->standing], record, link);
}

void http_connection_allow(struct http_server *server, struct http_connection *record, unsigned s,
			   enum http_closing waits_for)
{
	if (!record)
		return;
	pthread_mutex_lock(&server->connections.lock);
	move(&server->connections, record);
	record->deadline_ms = s ? record->moved_ms + (int64_t)s * 1000 : 0;
	record->waits_for = waits_for;
	pthread_mutex_unlock(&server->connections.lock);
}

void http_connection_begin(struct http_server *server, struct http_connection *record)
{
	/* the first one has its time since the connection */
	if (record && record->waits_for == HTTP_CLOSED_idle)
		http_connection_allow(server, record, HTTP_HEADERS_S, HTTP_CLOSED_headers);
}

void http_connection_progress(struct http_server *server, struct http_connection *record,
			      size_t bytes, bool is_streamed)
{
	if (!record)
		return;
	/* only this connection's own thread touches window_bytes while a body comes in */
	record->window_bytes += bytes;
	if (record->window_bytes < HTTP_PROGRESS_BYTES)
		return;
	pthread_mutex_lock(&server->connections.lock);
	move(&server->connections, record);
	if (is_streamed)
		record->deadline_ms = record->moved_ms +
				      (int64_t)server->options.slow_body_s * 1000;
	pthread_mutex_unlock(&server->connections.lock);
}

void http_connection_know(struct http_server *server, struct http_connection *record)
{
	if (!record || record->standing != HTTP_STRANGER)
		return;
	pthread_mutex_lock(&server->connections.lock);
	if (record->standing == HTTP_STRANGER) {
		leave(&server->connections, record);
		join(&server->connections, record, HTTP_KNOWN);
	}
	pthread_mutex_unlock(&server->connections.lock);
}

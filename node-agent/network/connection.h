/* SPDX-License-Identifier: Apache-2.0 */
/* A byte stream to the server: TCP, with TLS on it when the address says https. */
#ifndef NODE_AGENT_NETWORK_CONNECTION_H
#define NODE_AGENT_NETWORK_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "node-agent/network/tls.h"
#include "node-agent/network/url.h"
#include "node-agent/network/wait.h"

struct connection;

/* Tries every address the name has, in the resolver's order, until one accepts. tls: for https,
 * else NULL. Errors name host and port. */
struct connection *connection_open(const struct url *url, struct tls_context *tls,
				   const struct wait_limits *limits, struct error *err);
bool connection_write(struct connection *connection, const void *bytes, size_t length,
		      const struct wait_limits *limits, struct error *err);
/* got 0: the server ended the connection. */
bool connection_read(struct connection *connection, void *bytes, size_t room, size_t *got,
		     const struct wait_limits *limits, struct error *err);
/* The server has said something (or hung up) although nothing was asked to the end yet. Known for
 * plain connections only: TLS talks by itself. */
bool connection_has_input(const struct connection *connection);
void connection_close(struct connection *connection);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* TLS on a connected socket: certificates verified, host name checked. Door to OpenSSL, which is
 * initialised by the first tls_context_new() and never for plain http. */
#ifndef NODE_AGENT_NETWORK_TLS_H
#define NODE_AGENT_NETWORK_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "node-agent/network/wait.h"

struct tls_context;
struct tls;

/* ca_file: PEM certificates to trust; NULL: the system's. */
struct tls_context *tls_context_new(const char *ca_file, struct error *err);
void tls_context_free(struct tls_context *context);

/* Handshake as a client, TLS 1.2 or later. host: a name (sent as SNI, checked against the
 * certificate) or an address (checked against the certificate's addresses). The non-blocking fd
 * stays the caller's. */
struct tls *tls_open(struct tls_context *context, int fd, const char *host,
		     const struct wait_limits *limits, struct error *err);
/* All of the bytes, or false. */
bool tls_write(struct tls *tls, const void *bytes, size_t length, const struct wait_limits *limits,
	       struct error *err);
/* got 0: the other side ended the connection. */
bool tls_read(struct tls *tls, void *bytes, size_t room, size_t *got,
	      const struct wait_limits *limits, struct error *err);
void tls_close(struct tls *tls);

#endif

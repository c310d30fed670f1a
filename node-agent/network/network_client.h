/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the server, made by the process of the network: what the agent gives it, and what it
 * believes of what comes back. */
#ifndef NODE_AGENT_NETWORK_NETWORK_CLIENT_H
#define NODE_AGENT_NETWORK_NETWORK_CLIENT_H

#include "node-agent/network/http_answer.h"
#include "node-agent/network/http_client.h"
#include "node-agent/network/network.h"

/* One request at a time; of any thread, which may be one without rights. */
struct network_client;

struct network_client *network_client_new(struct network *network, struct error *err);
/* As http_client_send(), with the token added; the deadline is kept here too. ERROR_REMOTE as well
 * when the child has ended; the next may find another. */
bool network_client_send(struct network_client *client, const struct http_request *request,
			 struct http_answer *answer, struct error *err);
void network_client_free(struct network_client *client);

#endif

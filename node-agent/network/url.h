/* SPDX-License-Identifier: Apache-2.0 */
/* The server's address as people write it: http://host[:port][/prefix], https:// the same. */
#ifndef NODE_AGENT_NETWORK_URL_H
#define NODE_AGENT_NETWORK_URL_H

#include <stdbool.h>

#include "common/error.h"

struct url {
	bool is_tls;
	char host[256]; /* without the brackets of an IPv6 address; what certificates are checked
			   for */
	char port[6];   /* decimal */
	char authority[272]; /* for the Host: header */
	char prefix[256]; /* "" or "/some/path" without a slash at its end; request paths follow it
			   */
};

/* RFC 3986's http and https forms without user information, query and fragment, which have no
 * meaning here. ERROR_OPTION with a sentence that shows what a good one looks like. */
bool url_parse(const char *text, struct url *url, struct error *err);

#endif

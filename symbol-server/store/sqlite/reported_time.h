/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a host's time a report stands for that no report before it did: several agents of one
 * host, each with its own types or processes, count an hour once. Of fixed size: hosts that share a
 * place are not told apart from one that has a single agent. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_REPORTED_TIME_H
#define SYMBOL_SERVER_STORE_SQLITE_REPORTED_TIME_H

#include <stdint.h>

enum { REPORTED_HOSTS = 16384 };

struct reported_time {
	struct {
		uint64_t host;
		int64_t until_ms;
	} hosts[REPORTED_HOSTS];
};

/* Milliseconds of [from_ms, until_ms) that are new. */
uint64_t reported_time_take(struct reported_time *reported, uint32_t tenant, const char *host,
			    int64_t from_ms, int64_t until_ms);

#endif

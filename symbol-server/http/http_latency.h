/* SPDX-License-Identifier: Apache-2.0 */
/* How long answers took, from the request's last byte to the answer's first, as a histogram per
 * kind of route. Any thread may add. */
#ifndef SYMBOL_SERVER_HTTP_HTTP_LATENCY_H
#define SYMBOL_SERVER_HTTP_HTTP_LATENCY_H

#include <stdatomic.h>
#include <stdint.h>

/* HTTP_KIND(name in /metrics): what a route may be. */
#define HTTP_KINDS(KIND) KIND(other) KIND(query) KIND(report)

#define HTTP_KIND_ENUM(name_) HTTP_KIND_##name_,
enum http_kind { HTTP_KINDS(HTTP_KIND_ENUM) HTTP_KIND_COUNT };
#undef HTTP_KIND_ENUM

enum { HTTP_LATENCY_BOUNDS = 13 };

/* Upper bounds in milliseconds; one bucket more is above them all. */
extern const unsigned http_latency_bounds_ms[HTTP_LATENCY_BOUNDS];

struct http_latency {
	_Atomic uint64_t counts[HTTP_LATENCY_BOUNDS + 1], sum_ms;
};

void http_latency_add(struct http_latency *latency, int64_t ms);

#endif

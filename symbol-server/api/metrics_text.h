/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of Prometheus' text format 0.0.4, and the parts of GET /metrics. Every name gets the prefix
 * farflame_server_; units are seconds and bytes, counters end in _total. */
#ifndef SYMBOL_SERVER_API_METRICS_TEXT_H
#define SYMBOL_SERVER_API_METRICS_TEXT_H

#include <stdint.h>

#include "common/buffer.h"
#include "symbol-server/api/api.h"

/* HELP and TYPE; the values follow. type: "counter", "gauge", "histogram". */
void metrics_describe(struct buffer *out, const char *name, const char *type, const char *help);
/* Both, and its one value. */
void metrics_put(struct buffer *out, const char *name, const char *type, uint64_t value,
		 const char *help);
/* One value with one label, whose text may be anybody's. */
void metrics_put_labelled(struct buffer *out, const char *name, const char *label, const char *text,
			  uint64_t value);

#define COUNTER(name_, value_, help_) metrics_put(out, name_, "counter", value_, help_)
#define GAUGE(name_, value_, help_)   metrics_put(out, name_, "gauge", value_, help_)

/* The parts, by what they are about. */
void metrics_put_http(struct buffer *out, struct http_server *server);       /* NULL: none */
void metrics_put_samples(struct buffer *out, struct samples_store *store);   /* metrics_store.c */
void metrics_put_symbols(struct buffer *out, struct symbolizer *symbolizer); /* metrics_symbols.c */
void metrics_put_agents(struct buffer *out, const struct api *api);          /* metrics_agents.c */
void metrics_put_reports(struct buffer *out, struct api *api);               /* the same */
void metrics_put_disk(struct buffer *out, const struct api *api);            /* metrics_disk.c */

#endif

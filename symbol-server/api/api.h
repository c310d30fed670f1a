/* SPDX-License-Identifier: Apache-2.0 */
/* The REST API: one file per resource, routes.c lists them. */
#ifndef SYMBOL_SERVER_API_API_H
#define SYMBOL_SERVER_API_API_H

#include <stdint.h>

#include "common/error.h"
#include "common/log.h"
#include "symbol-server/api/server_clock.h"
#include "symbol-server/http/http_server.h"
#include "symbol-server/store/samples.h"
#include "symbol-server/store/symbols.h"
#include "symbol-server/symbolize/symbolizer.h"

enum { API_TENANT = 1 }; /* until tokens choose one */

/* REFUSAL(reason in /metrics): why a whole report of samples was not taken. */
#define REPORT_REFUSALS(REFUSAL)                                                      \
	REFUSAL(malformed) /* not OTLP, not gzip, not protobuf */                     \
	REFUSAL(untimely)  /* all of it older than what is kept, or in the future */  \
	REFUSAL(clock)     /* the same, but it is this server's clock: comes again */ \
	REFUSAL(too_large)                                                            \
	REFUSAL(media_type)                                                           \
	REFUSAL(busy)        /* comes again */                                        \
	REFUSAL(unavailable) /* disk, memory, ClickHouse: comes again */

#define REPORT_REFUSAL_ENUM(name_) REFUSED_##name_,
enum report_refusal { REPORT_REFUSALS(REPORT_REFUSAL_ENUM) REPORT_REFUSAL_COUNT };
#undef REPORT_REFUSAL_ENUM

/* What the resources work on; the server's context. */
struct api {
	struct samples_store *samples;
	struct symbols_store *symbols;
	struct symbolizer *symbolizer;
	struct http_server *server;         /* for its counters; NULL before it runs */
	int64_t retention_ms;               /* older samples are refused; 0: none are */
	struct samples_limits query_limits; /* of each one */
	int64_t started_ms;                 /* unix */
	_Atomic bool is_ready, is_stopping;
	_Atomic(const char *) doing; /* static: what the start is at, until is_ready */
	struct log_fault not_taken;  /* reports, for want of disk or memory */
	struct known_modules *known;
	struct label_limits *label_limits;
	struct server_clock clock;
	const char *data; /* --data */
	_Atomic uint64_t reports_refused[REPORT_REFUSAL_COUNT];
	_Atomic uint64_t leaves_named, leaves_nameless;        /* leaf_names.h */
	_Atomic uint64_t attributes_left_out, labels_left_out; /* ingest_rejects, label_limits.h */
};

/* known and label_limits: what is remembered from start to stop. */
bool api_init(struct api *api, struct error *err);
void api_release(struct api *api);

extern const struct http_route api_routes[];

/* For struct http_options: words a refusal, on the OTLP path as google.rpc.Status. */
void api_on_error(struct http_request *request, struct http_response *response, int status,
		  const char *sentence, void *context);

/* For struct http_options: until the server is ready only /healthz and /readyz answer. */
bool api_is_closed(void *context, char *sentence, size_t room);

#define API_HANDLER(name_) \
	void name_(struct http_request *request, struct http_response *response, void *context)
API_HANDLER(api_profiles_post);
API_HANDLER(api_flamegraph_get);
API_HANDLER(api_top_get);
API_HANDLER(api_diff_get);
API_HANDLER(api_sandwich_get);
API_HANDLER(api_timeline_get);
API_HANDLER(api_heatmap_get);
API_HANDLER(api_hotspots_get);
API_HANDLER(api_traces_get);
API_HANDLER(api_stack_get);
API_HANDLER(api_samples_delete);
API_HANDLER(api_types_get);
API_HANDLER(api_labels_get);
API_HANDLER(api_label_values_get);
API_HANDLER(api_modules_get);
API_HANDLER(api_modules_post);
API_HANDLER(api_module_put);
API_HANDLER(api_module_delete);
API_HANDLER(api_module_fetch);
API_HANDLER(api_module_symbols_get);
API_HANDLER(api_symbolicate_post);
API_HANDLER(api_symbolicate_options);
API_HANDLER(api_buildid_debuginfo_get);
API_HANDLER(api_buildid_executable_get);
API_HANDLER(api_buildid_section_get);
API_HANDLER(api_buildid_source_get);
API_HANDLER(api_agents_get);
API_HANDLER(api_healthz_get);
API_HANDLER(api_readyz_get);
API_HANDLER(api_metrics_get);
API_HANDLER(api_page_get);
API_HANDLER(api_openapi_get);

bool api_module_body(struct http_request *request, const void *bytes, size_t length, void *context);
void api_module_end(struct http_request *request, void *context);

/* A report of samples was refused: counted by the status's reason and said in the log, with who
 * sent it. */
void api_report_refused(struct api *api, struct http_request *request, int status,
			const char *sentence);

/* A batch on its way from the reader to the store: its labels within their limits. What was left
 * out is counted for /metrics. */
void api_limit_labels(struct api *api, struct sample_batch *batch,
		      const struct ingest_rejects *rejects, int64_t now_ms);

#endif

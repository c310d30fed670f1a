/* SPDX-License-Identifier: Apache-2.0 */
/* The REST API at a glance. schema/rest/openapi.yaml says the same to others; a test compares them.
 */
#include "symbol-server/api/api.h"
#include "symbol-server/api/symbolicate_request.h"

#define MIB          ((size_t)1 << 20)
#define LONG_RUNNING .may_take_long = true

const struct http_route api_routes[] = {
	/* OTLP in */
	{HTTP_POST, "/v1development/profiles", api_profiles_post, .body_limit = 16 * MIB,
	 .inflated_limit = 16 * MIB, .kind = HTTP_KIND_report},

	/* questions about samples */
	{HTTP_GET, "/api/v1/flamegraph", api_flamegraph_get, LONG_RUNNING},
	{HTTP_GET, "/api/v1/diff", api_diff_get, LONG_RUNNING},
	{HTTP_GET, "/api/v1/top", api_top_get, LONG_RUNNING},
	{HTTP_GET, "/api/v1/sandwich", api_sandwich_get, LONG_RUNNING},
	{HTTP_GET, "/api/v1/timeline", api_timeline_get, LONG_RUNNING},
	{HTTP_GET, "/api/v1/heatmap", api_heatmap_get, LONG_RUNNING},
	{HTTP_GET, "/api/v1/hotspots", api_hotspots_get, LONG_RUNNING},
	{HTTP_GET, "/api/v1/traces", api_traces_get, LONG_RUNNING},
	{HTTP_GET, "/api/v1/stacks/{id}", api_stack_get, LONG_RUNNING},
	{HTTP_GET, "/api/v1/types", api_types_get, LONG_RUNNING},
	{HTTP_GET, "/api/v1/labels", api_labels_get, LONG_RUNNING},
	{HTTP_GET, "/api/v1/labels/{name}", api_label_values_get, LONG_RUNNING},
	{HTTP_DELETE, "/api/v1/samples", api_samples_delete, LONG_RUNNING},

	/* what names are made from, and who sends */
	{HTTP_GET, "/api/v1/modules", api_modules_get, LONG_RUNNING},
	{HTTP_POST, "/api/v1/modules", api_modules_post, .body_limit = MIB,
	 .inflated_limit = 4 * MIB},
	{HTTP_PUT, "/api/v1/modules/{build_id}", api_module_put, api_module_body,
	 .body_limit = 4096 * MIB, .on_end = api_module_end,
	 .body_type = "application/octet-stream", LONG_RUNNING},
	{HTTP_DELETE, "/api/v1/modules/{build_id}", api_module_delete, LONG_RUNNING},
	{HTTP_POST, "/api/v1/modules/{build_id}/fetch", api_module_fetch},
	{HTTP_GET, "/api/v1/modules/{build_id}/symbols", api_module_symbols_get, LONG_RUNNING},
	{HTTP_GET, "/api/v1/agents", api_agents_get},

	/* for others' tools: Firefox Profiler and samply; gdb, elfutils and servers like this one
	 */
	{HTTP_POST, "/symbolicate/v5", api_symbolicate_post, .body_limit = SYMBOLICATE_BODY_BYTES,
	 .inflated_limit = SYMBOLICATE_BODY_BYTES, .any_origin = true, LONG_RUNNING},
	{HTTP_OPTIONS, "/symbolicate/v5", api_symbolicate_options, .any_origin = true},
	{HTTP_GET, "/buildid/{build_id}/debuginfo", api_buildid_debuginfo_get, LONG_RUNNING},
	{HTTP_GET, "/buildid/{build_id}/executable", api_buildid_executable_get, LONG_RUNNING},
	{HTTP_GET, "/buildid/{build_id}/section/{name}", api_buildid_section_get, LONG_RUNNING},
	{HTTP_GET, "/buildid/{build_id}/source/{path}", api_buildid_source_get, LONG_RUNNING},

	/* operations, contract, the page */
	{HTTP_GET, "/healthz", api_healthz_get, .is_always_open = true},
	{HTTP_GET, "/readyz", api_readyz_get, .is_always_open = true},
	{HTTP_GET, "/metrics", api_metrics_get},
	{HTTP_GET, "/openapi.yaml", api_openapi_get},
	{HTTP_GET, "/", api_page_get},
	{0},
};

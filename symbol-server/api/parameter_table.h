/* SPDX-License-Identifier: Apache-2.0 */
/* Every parameter of every endpoint: what parsing takes, what refusals say, and what openapi.yaml
 * has to say (a test compares both). One row is one meaning; of a name with several the endpoints
 * are told apart. */
#ifndef SYMBOL_SERVER_API_PARAMETER_TABLE_H
#define SYMBOL_SERVER_API_PARAMETER_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* ENDPOINT(name, method, path): those that take parameters. */
#define ENDPOINTS(ENDPOINT)                                                     \
	ENDPOINT(flamegraph, "get", "/api/v1/flamegraph")                       \
	ENDPOINT(diff, "get", "/api/v1/diff")                                   \
	ENDPOINT(top, "get", "/api/v1/top")                                     \
	ENDPOINT(sandwich, "get", "/api/v1/sandwich")                           \
	ENDPOINT(timeline, "get", "/api/v1/timeline")                           \
	ENDPOINT(heatmap, "get", "/api/v1/heatmap")           /* by=time */     \
	ENDPOINT(heatmap_functions, "get", "/api/v1/heatmap") /* by=function */ \
	ENDPOINT(hotspots, "get", "/api/v1/hotspots")                           \
	ENDPOINT(traces, "get", "/api/v1/traces")                               \
	ENDPOINT(stack, "get", "/api/v1/stacks/{id}")                           \
	ENDPOINT(types, "get", "/api/v1/types")                                 \
	ENDPOINT(labels, "get", "/api/v1/labels")                               \
	ENDPOINT(label_values, "get", "/api/v1/labels/{name}")                  \
	ENDPOINT(samples_delete, "delete", "/api/v1/samples")                   \
	ENDPOINT(modules, "get", "/api/v1/modules")                             \
	ENDPOINT(modules_announce, "post", "/api/v1/modules")                   \
	ENDPOINT(module_symbols, "get", "/api/v1/modules/{build_id}/symbols")   \
	ENDPOINT(readyz, "get", "/readyz")

#define ENDPOINT_ENUM(name_, method_, path_) ENDPOINT_##name_,
enum endpoint { ENDPOINTS(ENDPOINT_ENUM) ENDPOINT_COUNT, ENDPOINT_none = ENDPOINT_COUNT };
#undef ENDPOINT_ENUM

enum parameter_kind {
	PARAMETER_TEXT,
	PARAMETER_FLAG,     /* 1, true, 0, false */
	PARAMETER_NUMBER,   /* from minimum to maximum */
	PARAMETER_SHARE,    /* 0 to 1 */
	PARAMETER_CHOICE,   /* one of choices, "a|b|c" */
	PARAMETER_PATTERN,  /* RE2 */
	PARAMETER_SELECTOR, /* query/selector.h */
	PARAMETER_BUILD_ID, /* in hex */
	PARAMETER_TYPE,     /* of profiles */
	PARAMETER_TIME,     /* query/time_range.h */
	PARAMETER_DURATION,
	PARAMETER_STEP,    /* api/step.h: at most maximum of them; without it, at most minimum */
	PARAMETER_MINUTES, /* the same of whole minutes */
};

struct parameter_row {
	const char *name;
	uint32_t endpoints; /* bits 1 << enum endpoint */
	enum parameter_kind kind;
	uint32_t minimum, maximum;
	const char *choices;
	const char *otherwise; /* what its absence means, as it would be written; NULL: nothing, or
				  what the endpoint makes of it */
	bool is_required;
	const char *sentence; /* without a full stop; openapi.yaml begins with it */
};

extern const struct parameter_row parameter_table[]; /* ends with one without a name */

#endif

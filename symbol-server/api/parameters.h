/* SPDX-License-Identifier: Apache-2.0 */
/* The query string's parameters, checked. Every failure is ERROR_OPTION and names the parameter. */
#ifndef SYMBOL_SERVER_API_PARAMETERS_H
#define SYMBOL_SERVER_API_PARAMETERS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "symbol-server/http/http_server.h"
#include "symbol-server/query/pattern.h"
#include "symbol-server/query/query.h"

/* None but those of the space-separated list, and each once. */
bool parameters_check(struct http_request *request, const char *known, struct error *err);

bool parameter_uint(struct http_request *request, const char *name, uint32_t minimum,
		    uint32_t maximum, uint32_t *value, struct error *err); /* absent: unchanged */
/* choices "a|b|c"; index of the one given; absent: unchanged. */
bool parameter_choice(struct http_request *request, const char *name, const char *choices,
		      unsigned *index, struct error *err);
/* 1, true, 0, false; absent: unchanged. */
bool parameter_flag(struct http_request *request, const char *name, bool *value, struct error *err);
bool parameter_share(struct http_request *request, const char *name, double *value,
		     struct error *err); /* 0 to 1; absent or empty: unchanged */
/* NULL when absent or empty; the caller frees it. */
bool parameter_pattern(struct http_request *request, const char *name, struct pattern **pattern,
		       struct error *err);

/* Of the path, in hex. */
bool parameter_path_build_id(const struct http_request *request, struct build_id *id,
			     struct error *err);

/* type (default on-cpu, or NULL where is_type_optional), from, until, match → query. Release the
 * selector in either case. */
bool parameters_query(struct http_request *request, bool is_type_optional, struct query *query,
		      struct error *err);

/* base.type, base.from, base.until, base.match, with which query is compared: absent, type and
 * match are the query's; time is the query's when base.match is given, else the same length before
 * it. */
bool parameters_base_query(struct http_request *request, const struct query *query,
			   struct query *base, struct error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The query string's parameters, as parameter_table.h has them: the one place that reads them.
 * Every failure is ERROR_OPTION and names the parameter. A name that is none of the endpoint's is
 * read as absent, so that what several endpoints share can be read by one function. */
#ifndef SYMBOL_SERVER_API_PARAMETERS_H
#define SYMBOL_SERVER_API_PARAMETERS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"
#include "symbol-server/api/parameter_table.h"
#include "symbol-server/http/http_server.h"
#include "symbol-server/query/pattern.h"
#include "symbol-server/query/query.h"

struct parameters { /* borrows the request */
	struct http_request *request;
	enum endpoint endpoint;
};

/* None but those that the endpoint takes, each once, and all that it needs. */
bool parameters_open(struct parameters *out, struct http_request *request, enum endpoint endpoint,
		     struct error *err);

/* As it was given; NULL: absent. */
const char *parameter_given(const struct parameters *parameters, const char *name);
/* The same, or what its absence means; NULL: nothing. */
const char *parameter_text(const struct parameters *parameters, const char *name);

/* Absent, and with nothing in the table for that: *value stays as it is. */
bool parameter_number(const struct parameters *parameters, const char *name, uint32_t *value,
		      struct error *err);
bool parameter_choice(const struct parameters *parameters, const char *name, unsigned *index,
		      struct error *err); /* in the table's choices */
bool parameter_flag(const struct parameters *parameters, const char *name, bool *value,
		    struct error *err);
bool parameter_share(const struct parameters *parameters, const char *name, double *value,
		     struct error *err); /* empty is absent */
bool parameter_duration(const struct parameters *parameters, const char *name, int64_t *ms,
			struct error *err);

/* NULL when absent or empty; the caller frees it. */
bool parameter_pattern(const struct parameters *parameters, const char *name,
		       struct pattern **pattern, struct error *err);
/* *has_one: it is neither absent nor empty. */
bool parameter_build_id(const struct parameters *parameters, const char *name, struct build_id *id,
			bool *has_one, struct error *err);
/* A step of time in a range, and whether it was asked for or chosen (step.h). */
bool parameter_step(const struct parameters *parameters, const char *name, int64_t range_ms,
		    int64_t *step_ms, bool *is_asked, struct error *err);

/* Of the path, in hex. */
bool parameter_path_build_id(const struct http_request *request, struct build_id *id,
			     struct error *err);

/* type (NULL where its absence means all), from, until, match → query. Release the selector in
 * either case. */
bool parameters_query(const struct parameters *parameters, struct query *query, struct error *err);

/* base.type, base.from, base.until, base.match, with which query is compared: absent, type and
 * match are the query's; time is the query's when base.match is given, else the same length before
 * it. */
bool parameters_base_query(const struct parameters *parameters, const struct query *query,
			   struct query *base, struct error *err);

/* Whether an endpoint has ever read that row: what is listed and never read is a promise that
 * nobody keeps. For tests. */
bool parameter_was_read(const struct parameter_row *row, enum endpoint endpoint);

#endif

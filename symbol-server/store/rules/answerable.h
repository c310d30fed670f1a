/* SPDX-License-Identifier: Apache-2.0 */
/* What can be asked of either engine, and the sentence where it cannot be, or where the answer has
 * no room. Pure. */
#ifndef SYMBOL_SERVER_STORE_RULES_ANSWERABLE_H
#define SYMBOL_SERVER_STORE_RULES_ANSWERABLE_H

#include "symbol-server/store/samples.h"

/* The number of the query's type; ERROR_OPTION: there is none such. The first one is for questions
 * that can do without: -1 then, all types. */
bool answerable_any_type(const struct samples_query *query, int *type, struct error *err);
bool answerable_type(const struct samples_query *query, int *type, struct error *err);

/* A time line of sums. */
bool answerable_time_line(const struct samples_query *query, int *type, struct error *err);

/* Where err does not say why already. Always false. */
bool answer_is_too_large(size_t most_bytes, struct error *err);
bool time_line_is_too_large(struct error *err);

/* Sorts; what is of one series and step becomes one. Returns how many are left. */
size_t time_line_merge_points(struct timeline_point *points, size_t count);
/* Copies points into the time line's arena by series and time, those of one step added up; sorts
 * what it is given. False: no room. */
bool time_line_put_points(struct samples_timeline *timeline, struct timeline_point *points,
			  size_t count);

#endif

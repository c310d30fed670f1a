/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/parameters.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/options.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/step.h"
#include "symbol-server/query/time_range.h"

enum { ROWS_MAX = 128, NAMES_BYTES = 320 };

static _Atomic uint32_t was_read[ROWS_MAX]; /* by the table's rows: bits of endpoints */

/* NULL: the endpoint takes none of that name. */
static const struct parameter_row *row_of(enum endpoint endpoint, const char *name)
{
	for (const struct parameter_row *row = parameter_table; row->name; row++)
		if ((row->endpoints >> endpoint & 1) && !strcmp(row->name, name))
			return row;
	return NULL;
}

static const struct parameter_row *read_row(const struct parameters *parameters, const char *name)
{
	const struct parameter_row *row = row_of(parameters->endpoint, name);

	if (row)
		was_read[row - parameter_table] |= UINT32_C(1) << parameters->endpoint;
	return row;
}

bool parameter_was_read(const struct parameter_row *row, enum endpoint endpoint)
{
	return was_read[row - parameter_table] >> endpoint & 1;
}

/* --- which there may be --- */

struct check {
	const struct parameters *parameters;
	struct error *err;
	bool ok;
};

static bool is_unknown(enum endpoint endpoint, const char *name, struct error *err)
{
	char known[NAMES_BYTES] = "none";
	size_t length = 0;

	for (const struct parameter_row *row = parameter_table; row->name; row++)
		if ((row->endpoints >> endpoint & 1) &&
		    length + strlen(row->name) + 2 < NAMES_BYTES)
			length += (size_t)sprintf(known + length, "%s%s", length ? " " : "",
						  row->name);
	return error_set(err, ERROR_OPTION, "parameter '%.60s' is not known here; known: %s", name,
			 known);
}

static bool check_one(void *context, const char *name, const char *value)
{
	struct check *check = context;
	const struct parameters *parameters = check->parameters;

	if (!row_of(parameters->endpoint, name))
		check->ok = is_unknown(parameters->endpoint, name, check->err);
	else if (http_request_query(parameters->request, name) != value)
		check->ok = error_set(check->err, ERROR_OPTION,
				      "parameter '%.60s' is given more than once", name);
	return check->ok;
}

bool parameters_open(struct parameters *out, struct http_request *request, enum endpoint endpoint,
		     struct error *err)
{
	struct check check = {out, err, true};

	*out = (struct parameters){request, endpoint};
	http_request_each_query(request, check_one, &check);
	for (const struct parameter_row *row = parameter_table; check.ok && row->name; row++) {
		const char *text = http_request_query(request, row->name);

		if (row->is_required && (row->endpoints >> endpoint & 1) && !(text && *text))
			check.ok = error_set(err, ERROR_OPTION, "parameter '%s' is missing: %s",
					     row->name, row->sentence);
	}
	return check.ok;
}

/* --- one of them --- */

const char *parameter_given(const struct parameters *parameters, const char *name)
{
	return read_row(parameters, name) ? http_request_query(parameters->request, name) : NULL;
}

const char *parameter_text(const struct parameters *parameters, const char *name)
{
	const struct parameter_row *row = read_row(parameters, name);
	const char *text = row ? http_request_query(parameters->request, name) : NULL;

	return text || !row ? text : row->otherwise;
}

bool parameter_number(const struct parameters *parameters, const char *name, uint32_t *value,
		      struct error *err)
{
	const struct parameter_row *row = read_row(parameters, name);
	const char *text = parameter_text(parameters, name);
	size_t digits;
	uint64_t number;

	if (!text)
		return true;
	digits = strspn(text, "0123456789");
	number = digits && digits < 12 && !text[digits] ? strtoull(text, NULL, 10) : UINT64_MAX;
	if (number < row->minimum || number > row->maximum)
		return error_set(err, ERROR_OPTION,
				 "parameter '%s': '%.60s' is not a number from %u to %u. %s", name,
				 text, row->minimum, row->maximum, row->sentence);
	*value = (uint32_t)number;
	return true;
}

static bool choose(const char *name, const char *text, const char *choices, unsigned *index,
		   struct error *err)
{
	const char *at = choices;

	for (unsigned i = 0;; i++) {
		size_t length = strcspn(at, "|");

		if (strlen(text) == length && !strncmp(at, text, length)) {
			*index = i;
			return true;
		}
		if (!at[length])
			break;
		at += length + 1;
	}
	return error_set(err, ERROR_OPTION, "parameter '%s': '%.60s' is none of %s", name, text,
			 choices);
}

bool parameter_choice(const struct parameters *parameters, const char *name, unsigned *index,
		      struct error *err)
{
	const struct parameter_row *row = read_row(parameters, name);
	const char *text = parameter_text(parameters, name);

	return !text || choose(name, text, row->choices, index, err);
}

bool parameter_flag(const struct parameters *parameters, const char *name, bool *value,
		    struct error *err)
{
	const char *text = parameter_text(parameters, name);
	unsigned index = *value;

	if (text && !choose(name, text, "0|1|false|true", &index, err))
		return false;
	*value = index & 1;
	return true;
}

bool parameter_share(const struct parameters *parameters, const char *name, double *value,
		     struct error *err)
{
	const struct parameter_row *row = read_row(parameters, name);
	const char *text = parameter_text(parameters, name);
	double share;
	char *end;

	if (text && !*text)
		text = row->otherwise;
	if (!text)
		return true;
	share = strtod(text, &end);
	if (*end || strspn(text, "0123456789.") != strlen(text) || !(share >= 0) || share > 1)
		return error_set(err, ERROR_OPTION,
				 "parameter '%s': '%.60s' is not a share from 0 to 1. %s", name,
				 text, row->sentence);
	*value = share;
	return true;
}

bool parameter_duration(const struct parameters *parameters, const char *name, int64_t *ms,
			struct error *err)
{
	const char *text = parameter_text(parameters, name);

	return !text || duration_parse(text, ms, err) || error_prefix(err, "parameter '%s'", name);
}

bool parameter_pattern(const struct parameters *parameters, const char *name,
		       struct pattern **pattern, struct error *err)
{
	const char *text = parameter_text(parameters, name);

	*pattern = NULL;
	if (!text || !*text)
		return true;
	*pattern = pattern_new(text, err);
	return *pattern || error_prefix(err, "parameter '%s'", name);
}

bool parameter_build_id(const struct parameters *parameters, const char *name, struct build_id *id,
			bool *has_one, struct error *err)
{
	const char *text = parameter_text(parameters, name);

	*has_one = text && *text;
	if (!*has_one || build_id_parse(id, text, strlen(text)))
		return true;
	return error_set(err, ERROR_OPTION,
			 "parameter '%s': '%.60s' is not a build-id, which is 8 to 128 "
			 "hexadecimal digits",
			 name, text);
}

bool parameter_step(const struct parameters *parameters, const char *name, int64_t range_ms,
		    int64_t *step_ms, bool *is_asked, struct error *err)
{
	const struct parameter_row *row = read_row(parameters, name);
	const char *text = parameter_text(parameters, name);

	*is_asked = text && *text;
	if (!*is_asked) {
		*step_ms = step_choose(range_ms, row->minimum);
		return true;
	}
	return step_parse(text, range_ms, row->maximum, row->kind == PARAMETER_MINUTES, step_ms,
			  err) ||
	       error_prefix(err, "parameter '%s'", name);
}

bool parameter_path_build_id(const struct http_request *request, struct build_id *id,
			     struct error *err)
{
	const char *part = http_request_part(request);

	return build_id_parse(id, part, strlen(part)) ||
	       error_set(err, ERROR_OPTION,
			 "'%.140s' in the path is not a build-id: 4 to 64 bytes in hexadecimal",
			 part);
}

/* --- what is asked of the store --- */

/* What its absence means is told from then: now-1h is an hour before until. */
static bool read_time(const struct parameters *parameters, const char *name, int64_t now_ms,
		      int64_t then_ms, int64_t *ms, struct error *err)
{
	const struct parameter_row *row = read_row(parameters, name);
	const char *text = parameter_given(parameters, name);
	struct error none = {0};

	if (text && *text)
		return time_parse(text, now_ms, ms, err) ||
		       error_prefix(err, "parameter '%s'", name);
	if (!row || !row->otherwise)
		*ms = then_ms;
	else if (!time_parse(row->otherwise, then_ms, ms, &none))
		*ms = 0; /* before 1970 */
	return true;
}

#define TYPE_NAME(name_, unit_, is_gauge_, sampling_) name_ ", "

static bool no_such_type(const char *parameter, const char *type, struct error *err)
{
	static const char names[] = PROFILE_TYPES(TYPE_NAME);

	return error_set(err, ERROR_OPTION,
			 "parameter '%s': '%.60s' is not a profile type such as %.*s", parameter,
			 type, (int)sizeof names - 3, names);
}

bool parameters_query(const struct parameters *parameters, struct query *query, struct error *err)
{
	const char *match = parameter_given(parameters, "match");
	int64_t now_ms = unix_time_ms();

	query->tenant = API_TENANT;
	query->type = row_of(parameters->endpoint, "type") ? parameter_text(parameters, "type")
							   : "on-cpu";
	if (query->type && profile_type_find(query->type, strlen(query->type)) < 0)
		return no_such_type("type", query->type, err);
	if (!read_time(parameters, "until", now_ms, now_ms, &query->until_ms, err) ||
	    !read_time(parameters, "from", now_ms, query->until_ms, &query->from_ms, err))
		return false;
	if (query->from_ms > query->until_ms)
		return error_set(err, ERROR_OPTION, "parameter 'from' lies after 'until'");
	if (match &&
	    !selector_parse(&query->selector, match, http_request_arena(parameters->request), err))
		return error_prefix(err, "parameter 'match'");
	return true;
}

static bool read_base_times(const struct parameters *parameters, const struct query *query,
			    struct query *base, struct error *err)
{
	int64_t now_ms = unix_time_ms(), length = query->until_ms - query->from_ms;
	const char *from = parameter_given(parameters, "base.from");
	const char *until = parameter_given(parameters, "base.until");
	const bool is_other = parameter_given(parameters, "base.match") ||
			      parameter_given(parameters, "base.build_id");

	*base = (struct query){.from_ms = query->from_ms, .until_ms = query->until_ms};
	if ((!from || !*from) && (!until || !*until)) {
		if (!is_other && query->from_ms >= length) {
			base->until_ms = query->from_ms;
			base->from_ms = query->from_ms - length;
		}
		return true;
	}
	if (!read_time(parameters, "base.from", now_ms, -1, &base->from_ms, err) ||
	    !read_time(parameters, "base.until", now_ms, -1, &base->until_ms, err))
		return false;
	if (base->until_ms < 0)
		base->until_ms = base->from_ms + length;
	if (base->from_ms < 0)
		base->from_ms = base->until_ms > length ? base->until_ms - length : 0;
	if (base->from_ms > base->until_ms)
		return error_set(err, ERROR_OPTION,
				 "parameter 'base.from' lies after 'base.until'");
	return base->from_ms <= now_ms ||
	       error_set(err, ERROR_OPTION,
			 "parameter 'base.%s': the base lies in the future, of which there is "
			 "nothing yet",
			 from && *from ? "from" : "until");
}

bool parameters_base_query(const struct parameters *parameters, const struct query *query,
			   struct query *base, struct error *err)
{
	const char *type = parameter_given(parameters, "base.type");
	const char *match = parameter_given(parameters, "base.match");

	if (!read_base_times(parameters, query, base, err))
		return false;
	base->tenant = query->tenant;
	base->is_exact = query->is_exact;
	base->type = type && *type ? type : query->type;
	if (profile_type_find(base->type, strlen(base->type)) < 0)
		return no_such_type("base.type", base->type, err);
	base->selector_is = match ? "base.match" : "match";
	if (!match)
		match = parameter_given(parameters, "match");
	if (match &&
	    !selector_parse(&base->selector, match, http_request_arena(parameters->request), err))
		return error_prefix(err, "parameter '%s'", base->selector_is);
	return true;
}

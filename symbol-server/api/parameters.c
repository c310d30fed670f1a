/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/parameters.h"

#include <stdlib.h>
#include <string.h>

#include "symbol-server/api/api.h"
#include "symbol-server/query/time_range.h"

struct check {
	struct http_request *request;
	const char *known;
	unsigned index;
	struct error *err;
	bool ok;
};

static bool is_listed(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = strstr(list, name); at && length; at = strstr(at + 1, name))
		if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
			return true;
	return false;
}

static bool check_one(void *context, const char *name, const char *value)
{
	struct check *check = context;

	if (!is_listed(check->known, name) || strchr(name, ' '))
		check->ok = error_set(check->err, ERROR_OPTION,
				      "parameter '%.60s' is not known here; known: %s", name,
				      *check->known ? check->known : "none");
	else if (http_request_query(check->request, name) != value)
		check->ok = error_set(check->err, ERROR_OPTION,
				      "parameter '%.60s' is given more than once", name);
	return check->ok;
}

bool parameters_check(struct http_request *request, const char *known, struct error *err)
{
	struct check check = {.request = request, .known = known, .err = err, .ok = true};

	http_request_each_query(request, check_one, &check);
	return check.ok;
}

bool parameter_uint(struct http_request *request, const char *name, uint32_t minimum,
		    uint32_t maximum, uint32_t *value, struct error *err)
{
	const char *text = http_request_query(request, name);
	size_t digits;
	uint64_t number;

	if (!text)
		return true;
	digits = strspn(text, "0123456789");
	number = digits && digits < 12 && !text[digits] ? strtoull(text, NULL, 10) : UINT64_MAX;
	if (number < minimum || number > maximum)
		return error_set(err, ERROR_OPTION,
				 "parameter '%s': '%.60s' is not a number from %u to %u", name,
				 text, minimum, maximum);
	*value = (uint32_t)number;
	return true;
}

bool parameter_choice(struct http_request *request, const char *name, const char *choices,
		      unsigned *index, struct error *err)
{
	const char *text = http_request_query(request, name);
	const char *at = choices;

	if (!text)
		return true;
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

bool parameter_flag(struct http_request *request, const char *name, bool *value, struct error *err)
{
	unsigned index = *value;

	if (http_request_query(request, name) &&
	    !parameter_choice(request, name, "0|1|false|true", &index, err))
		return false;
	*value = index & 1;
	return true;
}

bool parameter_share(struct http_request *request, const char *name, double *value,
		     struct error *err)
{
	const char *text = http_request_query(request, name);
	double share;
	char *end;

	if (!text || !*text)
		return true;
	share = strtod(text, &end);
	if (*end || strspn(text, "0123456789.") != strlen(text) || !(share >= 0) || share > 1)
		return error_set(err, ERROR_OPTION,
				 "parameter '%s': '%.60s' is not a share from 0 to 1", name, text);
	*value = share;
	return true;
}

bool parameter_pattern(struct http_request *request, const char *name, struct pattern **pattern,
		       struct error *err)
{
	const char *text = http_request_query(request, name);

	*pattern = NULL;
	if (!text || !*text)
		return true;
	*pattern = pattern_new(text, err);
	return *pattern || error_prefix(err, "parameter '%s'", name);
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

static bool read_time(struct http_request *request, const char *name, int64_t now_ms,
		      int64_t fallback, int64_t *ms, struct error *err)
{
	const char *text = http_request_query(request, name);

	*ms = fallback;
	if (!text || !*text)
		return true;
	return time_parse(text, now_ms, ms, err) || error_prefix(err, "parameter '%s'", name);
}

#define TYPE_NAME(name_, unit_, is_gauge_, sampling_) name_ ", "

static bool no_such_type(const char *parameter, const char *type, struct error *err)
{
	static const char names[] = PROFILE_TYPES(TYPE_NAME);

	return error_set(err, ERROR_OPTION,
			 "parameter '%s': '%.60s' is not a profile type such as %.*s", parameter,
			 type, (int)sizeof names - 3, names);
}

bool parameters_query(struct http_request *request, bool is_type_optional, struct query *query,
		      struct error *err)
{
	const char *type = http_request_query(request, "type");
	const char *match = http_request_query(request, "match");
	int64_t now_ms = api_now_ms();

	query->tenant = API_TENANT;
	query->type = type ? type : is_type_optional ? NULL : "on-cpu";
	if (type && profile_type_find(type, strlen(type)) < 0)
		return no_such_type("type", type, err);
	if (!read_time(request, "until", now_ms, now_ms, &query->until_ms, err) ||
	    !read_time(request, "from", now_ms,
		       query->until_ms > QUERY_DEFAULT_MS ? query->until_ms - QUERY_DEFAULT_MS : 0,
		       &query->from_ms, err))
		return false;
	if (query->from_ms > query->until_ms)
		return error_set(err, ERROR_OPTION, "parameter 'from' lies after 'until'");
	if (match && !selector_parse(&query->selector, match, http_request_arena(request), err))
		return error_prefix(err, "parameter 'match'");
	return true;
}

static bool read_base_times(struct http_request *request, const struct query *query,
			    struct query *base, struct error *err)
{
	int64_t now_ms = api_now_ms(), length = query->until_ms - query->from_ms;
	const char *from = http_request_query(request, "base.from");
	const char *until = http_request_query(request, "base.until");
	const bool is_other = http_request_query(request, "base.match") ||
			      http_request_query(request, "base.build_id");

	*base = (struct query){.from_ms = query->from_ms, .until_ms = query->until_ms};
	if ((!from || !*from) && (!until || !*until)) {
		if (!is_other && query->from_ms >= length) {
			base->until_ms = query->from_ms;
			base->from_ms = query->from_ms - length;
		}
		return true;
	}
	if (!read_time(request, "base.from", now_ms, -1, &base->from_ms, err) ||
	    !read_time(request, "base.until", now_ms, -1, &base->until_ms, err))
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

bool parameters_base_query(struct http_request *request, const struct query *query,
			   struct query *base, struct error *err)
{
	const char *type = http_request_query(request, "base.type");
	const char *match = http_request_query(request, "base.match");

	if (!read_base_times(request, query, base, err))
		return false;
	base->tenant = query->tenant;
	base->is_exact = query->is_exact;
	base->type = type && *type ? type : query->type;
	if (profile_type_find(base->type, strlen(base->type)) < 0)
		return no_such_type("base.type", type, err);
	base->selector_is = match ? "base.match" : "match";
	if (!match)
		match = http_request_query(request, "match");
	if (match && !selector_parse(&base->selector, match, http_request_arena(request), err))
		return error_prefix(err, "parameter '%s'", base->selector_is);
	return true;
}

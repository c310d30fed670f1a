// SPDX-License-Identifier: Apache-2.0
#include "symbol-server/query/pattern.h"

#include <re2/re2.h>

#include <cstring>
#include <new>

struct pattern {
	RE2 expression;

	pattern(const char *text, const RE2::Options &options) : expression(text, options)
	{
	}
};

struct pattern *pattern_new(const char *expression, struct error *err)
{
	RE2::Options options;
	struct pattern *made;

	if (strlen(expression) > PATTERN_TEXT_MAX) {
		error_set(err, ERROR_OPTION, "a regular expression has at most %d characters",
			  PATTERN_TEXT_MAX);
		return nullptr;
	}
	options.set_log_errors(false);
	options.set_max_mem(PATTERN_MEMORY);
	options.set_dot_nl(true);
	made = new (std::nothrow) pattern(expression, options);
	if (!made) {
		error_set(err, ERROR_MEMORY, "out of memory");
		return nullptr;
	}
	if (!made->expression.ok()) {
		error_set(err, ERROR_OPTION, "not a regular expression: %.200s",
			  made->expression.error().c_str());
		delete made;
		return nullptr;
	}
	return made;
}

bool pattern_matches_all(const struct pattern *pattern, const char *text)
{
	return RE2::FullMatch(text, pattern->expression);
}

bool pattern_matches_part(const struct pattern *pattern, const char *text)
{
	return RE2::PartialMatch(text, pattern->expression);
}

void pattern_free(struct pattern *pattern)
{
	delete pattern;
}

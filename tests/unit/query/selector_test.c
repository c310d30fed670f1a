/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/query/selector.h"
#include "tests/check.h"

static const char *const names[] = {"host", "process", "service"};
static const char *const values[] = {"web-1", "nginx", "api"};
static const struct series_labels labels = {names, values, 3};

/* What Prometheus 2.x says to the same selectors over the same labels. */
static const struct {
	const char *text;
	bool matches;
} rows[] = {
	{"", true},
	{"{}", true},
	{" { } ", true},
	{"{service=\"api\"}", true},
	{"{service='api'}", true},
	{"{service=`api`}", true},
	{"{service=\"ap\"}", false},
	{"{service!=\"api\"}", false},
	{"{service!=\"db\"}", true},
	{"{host=~\"web.*\"}", true},
	{"{host=~\"web\"}", false}, /* anchored */
	{"{host=~\"eb-1\"}", false},
	{"{host=~\"web-1|db\"}", true},
	{"{host!~\"web.*\"}", false},
	{"{host!~\"web\"}", true},
	{"{service=\"api\", host=~\"web-[0-9]\",}", true},
	{"{service=\"api\",host=\"db\"}", false},
	{"{container=\"\"}", true}, /* absent is empty */
	{"{container!=\"\"}", false},
	{"{container=~\".*\"}", true},
	{"{container=~\".+\"}", false},
	{"{thread=\"x\"}", true}, /* no part of a series */
	{"{k8s.pod=\"\"}", true},
	{"{service.name=\"api\"}", true}, /* the same label */
	{"{service_name=\"api\"}", true},
	{"{host_name=\"web-1\",host.name=\"web-1\"}", true},
	{"{host.name=\"db\"}", false},
	{"{deployment.environment.name=\"\"}", true},
};

static const struct {
	const char *text, *message;
} refused[] = {
	{"service=\"api\"", "'{' expected at character 1"},
	{"{service}", "=, !=, =~ or !~ expected at character 9"},
	{"{service=api}", "a quoted value expected at character 10"},
	{"{service=\"api}", "the value's closing quote is missing at character 15"},
	{"{service=\"api\"", "',' or '}' expected at character 15"},
	{"{service=\"api\"} x", "nothing more expected after '}' at character 17"},
	{"{=\"api\"}", "a label name expected at character 2"},
	{"{\xc3\xa4=\"api\"}", "a label name expected at character 2"},
	{"{a=\"\xc3\xa4\xc3\xa4\"b}", "',' or '}' expected at character 8"},
	{"{a=\"\\x\"}", "unknown escape at character 5"},
	{"{a=\"x\\", "unknown escape at character 6"},
	{"{a=~\"(\"}", "the value at character 5: not a regular expression: missing ): ("},
	{"{a==\"b\"}", "a quoted value expected at character 4"},
	{"{", "a label name expected at character 2"},
};

static void test_matching(struct arena *arena)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct selector selector;
		struct error err = {0};
		bool ok = selector_parse(&selector, rows[i].text, arena, &err) &&
			  selector_matches_series(&selector, &labels) == rows[i].matches;

		if (!CHECK(ok))
			printf("# %s %s\n", rows[i].text, err.message);
		selector_release(&selector);
	}
}

static void test_refusals(struct arena *arena)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		struct selector selector;
		struct error err = {0};

		CHECK(!selector_parse(&selector, refused[i].text, arena, &err));
		CHECK_TEXT(err.message, refused[i].message);
		CHECK_NUMBER(err.kind, ERROR_OPTION);
		selector_release(&selector);
	}
}

static void test_values_and_threads(struct arena *arena)
{
	struct selector selector;

	CHECK(selector_parse(&selector, "{a=\"q\\\"\\\\\\n'\",thread=~\"w.*\",b='\"'}", arena,
			     NULL));
	CHECK_NUMBER(selector.count, 3);
	CHECK_TEXT(selector.matchers[0].value, "q\"\\\n'");
	CHECK_TEXT(selector.matchers[2].value, "\"");
	CHECK(selector_has_series(&selector) && selector_has_thread(&selector));
	CHECK(selector_matches_thread(&selector, "worker"));
	CHECK(!selector_matches_thread(&selector, "main"));
	selector_release(&selector);
	CHECK(selector_parse(&selector, "{thread!=\"x\"}", arena, NULL));
	CHECK(!selector_has_series(&selector));
	selector_release(&selector);
}

static void test_bounds(struct arena *arena)
{
	char text[SELECTOR_TEXT_MAX + 100];
	struct selector selector;
	struct error err = {0};

	strcpy(text, "{");
	for (int i = 0; i < SELECTOR_MATCHERS_MAX + 1; i++)
		strcat(text, "a=\"b\",");
	strcat(text, "}");
	CHECK(!selector_parse(&selector, text, arena, &err));
	CHECK(strstr(err.message, "too many matchers"));
	selector_release(&selector);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	CHECK(!selector_parse(&selector, text, arena, &err));
	text[0] = '{';
	text[200] = 0;
	CHECK(!selector_parse(&selector, text, arena, &err));
	CHECK(strstr(err.message, "label name is too long"));
	/* an expression that would take a backtracking matcher for ever */
	CHECK(selector_parse(&selector, "{host=~\"(a*)*(a*)*(a*)*b\"}", arena, &err));
	memset(text, 'a', 4000);
	text[4000] = 0;
	CHECK(!selector_matches_series(&selector,
				       &(struct series_labels){(const char *const[]){"host"},
							       (const char *const[]){text}, 1}));
	selector_release(&selector);
}

int main(void)
{
	struct arena arena;

	arena_init(&arena, 1 << 20);
	test_matching(&arena);
	test_refusals(&arena);
	test_values_and_threads(&arena);
	test_bounds(&arena);
	arena_release(&arena);
	return checks_done();
}

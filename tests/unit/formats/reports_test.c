/* SPDX-License-Identifier: Apache-2.0 */
/* Formats for people and their programs: figures, escapes, limits. How browsers and other readers
 * take them: tests/system/formats_test.py, tests/browser/report_test.py. */
#include <stdlib.h>

#include "symbol-server/formats/flame_formats.h"
#include "symbol-server/formats/human.h"
#include "tests/check.h"

static const struct flame_module modules[] = {{"unused", "00"}, {"a,\"pp", "abcd"}};
static struct accounting accounting = {.is_sampled = true,
				       .value = 100,
				       .error = 69,
				       .samples = 10,
				       .taken = 12,
				       .lost = 2,
				       .unwind_incomplete = 1,
				       .hosts = 1};
static const uint64_t unsymbolized[] = {0, 3};

static struct flame_answer make_answer(const char *name)
{
	struct flame_tree *tree = flame_tree_new(100);
	struct top_table *top = top_table_new(100);
	struct flame_frame frames[] = {
		{.name = "web", .file = "", .module = FRAME_NO_MODULE, .kind = FRAME_group},
		{.name = "main", .file = "a.c", .line = 7, .module = 1, .kind = FRAME_native},
		{.name = name, .file = "b.c", .line = 0, .module = 1, .kind = FRAME_inline},
		{.name = "vfs", .file = "", .module = FRAME_NO_MODULE, .kind = FRAME_kernel},
	};

	flame_tree_add(tree, frames, 4, 60, 6);
	top_table_add(top, frames, 4, 60, 6);
	flame_tree_add(tree, frames, 3, 39, 3);
	top_table_add(top, frames, 3, 39, 3);
	flame_tree_add(tree, frames, 0, 1, 1);
	top_table_add(top, frames, 0, 1, 1);
	flame_tree_cut(tree, 100);
	top_table_sort(top, false);
	return (struct flame_answer){.type = "on-cpu",
				     .unit = "bytes",
				     .match = "{a=\"`|<b>\"}",
				     .from_ms = 60000,
				     .until_ms = 120000,
				     .tree = tree,
				     .top = top,
				     .top_limit = 10,
				     .modules = modules,
				     .module_count = 2,
				     .unsymbolized = unsymbolized,
				     .accounting = &accounting};
}

static void free_answer(struct flame_answer *answer)
{
	flame_tree_free((struct flame_tree *)(uintptr_t)answer->tree);
	top_table_free((struct top_table *)(uintptr_t)answer->top);
}

typedef bool writer_fn(const struct flame_answer *answer, struct buffer *out);

/* NUL-terminated; free it. */
static char *written(writer_fn *writer, const char *name)
{
	struct flame_answer answer = make_answer(name);
	struct buffer out;
	size_t length;

	buffer_init(&out, 1 << 20);
	CHECK(writer(&answer, &out));
	buffer_append_char(&out, 0);
	free_answer(&answer);
	return (char *)buffer_take(&out, &length);
}

static void check_whole(writer_fn *writer, const char *name, const char *want)
{
	char *got = written(writer, name);

	CHECK_TEXT(got, want);
	free(got);
}

static void check_has(writer_fn *writer, const char *name, const char *want, bool has)
{
	char *got = written(writer, name);

	if (!CHECK(!!strstr(got, want) == has))
		printf("# %s: %.3000s\n", want, got);
	free(got);
}

static void test_csv(void)
{
	check_whole(flame_csv, "f",
		    "node,parent,kind,name,file,line,module,build_id,self,total,self_samples,"
		    "total_samples,self_error,total_error,signature,language\r\n"
		    "0,,root,all,,0,,,1,100,1,10,3,69,,\r\n"
		    "1,0,group,web,,0,,,0,99,0,9,0,69,,\r\n"
		    "2,1,native,main,a.c,7,\"a,\"\"pp\",abcd,0,99,0,9,0,69,,\r\n"
		    "3,2,inline,f,b.c,0,\"a,\"\"pp\",abcd,39,99,3,9,51,69,,\r\n"
		    "4,3,kernel,vfs,,0,,,60,60,6,6,52,52,,\r\n");
	check_has(top_csv, "f", "\r\nf,b.c,0,\"a,\"\"pp\",abcd,39,99,3,9,51,69,,\r\n", true);
	check_has(flame_csv, "=1+1", ",\"'=1+1\",", true);
	check_has(flame_csv, "+1", ",\"'+1\",", true);
	check_has(flame_csv, "-1", ",\"'-1\",", true);
	check_has(flame_csv, "@f", ",\"'@f\",", true);
	check_has(flame_csv, "\tf", ",\"'\tf\",", true);
	check_has(flame_csv, "a\r\nb\"", ",\"a\r\nb\"\"\",", true);
	check_has(flame_csv, "\xff", ",\xef\xbf\xbd,", true);
}

static void test_speedscope(void)
{
	check_whole(
		flame_speedscope, "f",
		"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
		"\"exporter\":\"farflame " FARFLAME_VERSION "\","
		"\"name\":\"on-cpu {a=\\\"`|<b>\\\"} 1970-01-01T00:01:00Z – 1970-01-01T00:02:00Z\","
		"\"activeProfileIndex\":0,\"shared\":{\"frames\":[{\"name\":\"web\"},"
		"{\"name\":\"main\",\"file\":\"a.c\",\"line\":7},{\"name\":\"f\",\"file\":\"b.c\"},"
		"{\"name\":\"vfs\"}]},\"profiles\":[{\"type\":\"evented\",\"name\":\"on-cpu\","
		"\"unit\":\"bytes\",\"startValue\":0,\"endValue\":100,\"events\":["
		"{\"type\":\"O\",\"frame\":0,\"at\":0},{\"type\":\"O\",\"frame\":1,\"at\":0},"
		"{\"type\":\"O\",\"frame\":2,\"at\":0},{\"type\":\"O\",\"frame\":3,\"at\":0},"
		"{\"type\":\"C\",\"frame\":3,\"at\":60},{\"type\":\"C\",\"frame\":2,\"at\":99},"
		"{\"type\":\"C\",\"frame\":1,\"at\":99},{\"type\":\"C\",\"frame\":0,\"at\":99}"
		"]}]}\n");
}

/* What was told whole has no error anywhere. */
static void test_whole(void)
{
	accounting.is_sampled = false;
	check_has(flame_markdown, "f", "±", false);
	check_has(flame_svg, "f", "±", false);
	check_has(top_csv, "f", "\r\nf,b.c,0,\"a,\"\"pp\",abcd,39,99,3,9,,,,\r\n", true);
	accounting.is_sampled = true;
}

static void test_markdown(void)
{
	check_has(flame_markdown, "f", "- **Total:** 100 B ± 69 B in 10 samples of 1 host\n", true);
	check_has(flame_markdown, "f", "- **Selected:** `{a=\"'|<b>\"}`\n", true);
	check_has(flame_markdown, "f",
		  "| 39.0 % ± 36.1 | 99.0 % ± 0.7 | 39 B ± 51 B | `f (inlined)` | `b.c` in `a,\"pp` |\n", true);
	check_has(flame_markdown, "f",
		  "1. **60.0 % ± 34.3** (60 B ± 52 B) `web` → `main` → `f (inlined)` → `[k] vfs`\n", true);
	check_has(flame_markdown, "f", "  - 3: `a,\"pp`, build-id `abcd`\n", true);
	check_has(flame_markdown, "f", "- Lost on the way: 2 (16.7 %)\n", true);
	check_has(flame_markdown, "a`b|c\nd<i>", "`a'b\\|c d<i> (inlined)`", true);
	check_has(flame_markdown, "a`b|c\nd<i>", "a`b", false);
}

static void test_svg(void)
{
	check_has(flame_svg, "f",
		  "<title>f (inlined)\n99 B ± 69 B, 99.0 % ± 0.7, 9 samples; own 39.0 % ± 36.1\nb.c\na,&quot;pp "
		  "abcd</title>"
		  "<rect x=\"10\" width=\"1168.2\" y=\"130\" height=\"17\"/><text x=\"14\" "
		  "y=\"143\">f (inlined)</text>",
		  true);
	check_has(flame_svg, "f", "10 samples of 1 host; taken 12, lost 2 (16.7 %)", true);
	check_has(flame_svg, "<g onload='x'>&\"", "&lt;g onload=&#39;x&#39;&gt;&amp;&quot;", true);
	check_has(flame_svg, "<g onload='x'>&\"", "<g o", false);
	check_has(flame_svg, "]]></script>", "]]&gt;&lt;/script&gt;", true);
	check_has(flame_svg, "\x01\x1b\xef\xbf\xbf\xff",
		  ">\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd (inlined)", true);
}

static void test_html(void)
{
	check_has(flame_html, "</script><b>&", "\\u003c/script\\u003e\\u003cb\\u003e\\u0026", true);
	check_has(flame_html, "</script><b>&", "</script><b>", false);
	check_has(flame_html, "\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa",
		  "\"\\u2028\\u2029\xef\xbf\xbd\"", true);
	check_has(flame_html, "@profile@", "\"@profile@\"", true);
	check_has(flame_html, "f", "\"functions\":[{\"name\":\"vfs\"", true);
	check_has(flame_html, "f", "@script-hash@", false);
}

/* Nothing was sampled. */
static void test_empty(void)
{
	static writer_fn *const writers[] = {flame_svg,      flame_html,       flame_csv,
					     flame_markdown, flame_speedscope, top_csv,
					     top_json};
	struct accounting none = {0};
	struct flame_answer answer = {.type = "on-cpu",
				      .unit = "nanoseconds",
				      .tree = flame_tree_new(1),
				      .top = top_table_new(1),
				      .accounting = &none};

	for (size_t i = 0; i < sizeof(writers) / sizeof(*writers); i++) {
		struct buffer out, tight;

		buffer_init(&out, 1 << 20);
		buffer_init(&tight, 30);
		CHECK(writers[i](&answer, &out) && out.length > 30);
		CHECK(!writers[i](&answer, &tight));
		buffer_release(&out);
		buffer_release(&tight);
	}
	free_answer(&answer);
}

/* Frames of a hundredth of a pixel: not in the picture, but counted in it. */
static void test_narrow(void)
{
	struct flame_tree *tree = flame_tree_new(1000);
	struct flame_answer answer = {
		.type = "on-cpu", .unit = "samples", .tree = tree, .accounting = &accounting};
	struct buffer out;

	for (int i = 0; i < 50; i++) {
		char *name = malloc(8);
		struct flame_frame frames[] = {
			{.name = name, .file = "", .module = FRAME_NO_MODULE, .kind = FRAME_native},
			{.name = "below",
			 .file = "",
			 .module = FRAME_NO_MODULE,
			 .kind = FRAME_native},
		};

		snprintf(name, 8, "n%d", i);
		flame_tree_add(tree, frames, 2, i ? 1 : 99951, 1);
	}
	buffer_init(&out, 1 << 20);
	CHECK(flame_svg(&answer, &out));
	buffer_append_char(&out, 0);
	CHECK(strstr((char *)out.bytes, "98 frames narrower than 0.1 pixels with 0.05 %"));
	CHECK(strstr((char *)out.bytes, "<title>n0\n") &&
	      !strstr((char *)out.bytes, "<title>n1\n"));
	buffer_release(&out);
	for (size_t i = 0; i < tree->count; i++)
		if (tree->nodes[i].frame.name[0] == 'n')
			free((char *)(uintptr_t)tree->nodes[i].frame.name);
	flame_tree_free(tree);
}

static void test_human(void)
{
	static const struct {
		uint64_t value;
		const char *unit, *want;
	} rows[] = {
		{0, "nanoseconds", "0 ns"},
		{999, "nanoseconds", "999 ns"},
		{1500, "nanoseconds", "1.50 µs"},
		{12345678, "nanoseconds", "12.3 ms"},
		{59999999999, "nanoseconds", "60.0 s"},
		{UINT64_C(86400000000000), "nanoseconds", "1.00 d"},
		{UINT64_MAX, "nanoseconds", "213504 d"},
		{1023, "bytes", "1023 B"},
		{1536, "bytes", "1.50 KiB"},
		{UINT64_MAX, "bytes", "16384 PiB"},
		{UINT64_MAX, "samples", "18446744073709551615"},
	};
	static const struct {
		uint64_t part, whole;
		const char *want;
	} shares[] = {
		{0, 10, "0 %"},
		{1, 0, "0 %"},
		{10, 10, "100 %"},
		{1, 1000000, "< 0.01 %"},
		{999999, 1000000, "> 99.99 %"},
		{9996, 10000, "99.9 %"},
		{1, 3, "33.3 %"},
		{1, 30, "3.33 %"},
	};
	char text[HUMAN_TEXT];

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		human_value(rows[i].value, rows[i].unit, text);
		CHECK_TEXT(text, rows[i].want);
	}
	for (size_t i = 0; i < sizeof(shares) / sizeof(*shares); i++) {
		human_share(shares[i].part, shares[i].whole, text);
		CHECK_TEXT(text, shares[i].want);
	}
	human_time(INT64_C(1700000000999), text);
	CHECK_TEXT(text, "2023-11-14T22:13:20Z");
	human_time(INT64_MAX, text);
	CHECK(*text);
}

int main(void)
{
	test_csv();
	test_speedscope();
	test_markdown();
	test_svg();
	test_whole();
	test_html();
	test_empty();
	test_narrow();
	test_human();
	return checks_done();
}

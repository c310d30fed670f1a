/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes themselves, as a client sees them. */
#include "symbol-server/formats/accounting_json.h"
#include "symbol-server/formats/flame_formats.h"

#include "tests/check.h"

static const struct flame_module modules[] = {{"unused", "00"}, {"app", "abcd"}, {"vmlinux", ""}};

static void add(struct flame_tree *tree, const struct flame_frame *frames, size_t depth,
		uint64_t value)
{
	flame_tree_add(tree, frames, depth, value, 1);
}

static struct flame_tree *make_tree(void)
{
	struct flame_tree *tree = flame_tree_new(100);
	struct flame_frame one[] = {
		{.name = "nginx", .file = "", .module = FRAME_NO_MODULE, .kind = FRAME_group},
		{.name = "main", .file = "a.c", .line = 7, .module = 1, .kind = FRAME_native},
		{.name = "a;b\n", .file = "a.c", .line = 9, .module = 1, .kind = FRAME_inline},
		{.name = "vfs_read", .file = "", .module = 2, .kind = FRAME_kernel},
		{.name = "vmlinux+0x1a",
		 .file = "",
		 .module = 2,
		 .kind = FRAME_unresolved,
		 .is_kernel = true},
	};

	add(tree, one, 5, UINT64_C(9007199254740993)); /* 2^53 + 1 */
	add(tree, one, 2, 5);
	return tree;
}

static void check_text(struct buffer *out, const char *want)
{
	buffer_append_char(out, 0);
	CHECK_TEXT((const char *)out->bytes, want);
	buffer_release(out);
}

static struct accounting accounting = {
	.value = 1,
	.samples = 2,
	.taken = 5,
	.lost = 3,
	.unexplained = -1,
	.unwind_incomplete = 4,
	.unsymbolized = 6,
	.nameless_value = 9,
	.nameless_modules = 2,
	.cut = 7,
	.hosts = 8,
};

static struct flame_answer answer_of(const struct flame_tree *tree)
{
	return (struct flame_answer){.type = "on-cpu",
				     .unit = "nanoseconds",
				     .from_ms = 60000,
				     .until_ms = 120000,
				     .tree = tree,
				     .modules = modules,
				     .module_count = 3,
				     .accounting = &accounting};
}

static void test_json(void)
{
	struct flame_tree *tree = make_tree();
	struct flame_answer answer = answer_of(tree);
	struct buffer out;

	accounting_add_lost(&accounting, "ring_full", 1);
	accounting_add_lost(&accounting, "queue", 1);
	accounting_add_lost(&accounting, "ring_full", 1);
	accounting_add_incomplete(&accounting, "rare", 1);
	accounting_add_incomplete(&accounting, "often", 3);
	accounting_add_place(&accounting, "app", "abcd", 1);
	accounting_add_place(&accounting, "libc", "", 2);
	accounting_sort_incomplete(&accounting);
	flame_tree_cut(tree, 100);
	buffer_init(&out, 1 << 20);
	CHECK(flame_json(&answer, &out));
	check_text(&out,
		   "{\"type\":\"on-cpu\",\"unit\":\"nanoseconds\",\"from\":60000,\"until\":120000,"
		   "\"names\":[\"all\",\"nginx\",\"main\",\"a;b\\u000a\",\"vfs_read\",\"vmlinux+"
		   "0x1a\"],"
		   "\"signatures\":{},\"files\":[\"a.c\"],"
		   "\"modules\":[{\"name\":\"app\",\"build_id\":\"abcd\"},"
		   "{\"name\":\"vmlinux\",\"build_id\":\"\"}],"
		   "\"kinds\":[\"root\",\"group\",\"native\",\"inline\",\"kernel\",\"interpreter\","
		   "\"jit\",\"gpu\",\"unresolved\",\"incomplete\",\"cut\",\"idle\",\"runtime\"],"
		   "\"nodes\":{\"name\":[0,1,2,3,4,5],\"file\":[-1,-1,0,0,-1,-1],"
		   "\"line\":[0,0,7,9,0,0],\"module\":[-1,-1,0,0,1,1],\"parent\":[-1,0,1,2,3,4],"
		   "\"self\":[0,0,5,0,0,9007199254740993],"
		   "\"total\":[9007199254740998,9007199254740998,9007199254740998,"
		   "9007199254740993,9007199254740993,9007199254740993],"
		   "\"kind\":[0,1,2,3,4,8]},"
		   "\"accounting\":{\"value\":1,\"samples\":2,\"taken\":5,\"lost\":3,"
		   "\"lost_by\":{\"ring_full\":2,\"queue\":1,\"unexplained\":-1},"
		   "\"unwind_incomplete\":4,"
		   "\"incomplete_by\":[{\"reason\":\"often\",\"samples\":3,\"modules\":["
		   "{\"name\":\"libc\",\"build_id\":\"\",\"samples\":2},"
		   "{\"name\":\"app\",\"build_id\":\"abcd\",\"samples\":1}]},"
		   "{\"reason\":\"rare\",\"samples\":1,\"modules\":[]}],"
		   "\"nameless_value\":9,\"nameless_modules\":2,\"unsymbolized\":6,\"cut\":7,\"hosts\":8}}\n");
	flame_tree_free(tree);
}

/* A name is in the list once for each of its signatures, and has those by its number. */
static void test_signatures(void)
{
	static const char *const signatures[] = {"work(int)", "work(long)", NULL, "work(int)"};
	struct flame_tree *tree = flame_tree_new(100);
	struct flame_answer answer = answer_of(tree);
	struct buffer out;

	for (unsigned i = 0; i < 4; i++)
		add(tree,
		    (struct flame_frame[]){{.name = "work",
					    .signature = signatures[i],
					    .file = "",
					    .module = 1,
					    .kind = FRAME_native}},
		    1, 10 + i);
	flame_tree_cut(tree, 100);
	buffer_init(&out, 1 << 20);
	CHECK(flame_json(&answer, &out));
	buffer_append_char(&out, 0);
	CHECK(strstr((const char *)out.bytes,
		     "\"names\":[\"all\",\"work\",\"work\",\"work\"],"
		     "\"signatures\":{\"1\":\"work(int)\",\"3\":\"work(long)\"}"));
	CHECK(strstr((const char *)out.bytes, "\"total\":[46,23,12,11]"));
	buffer_release(&out);
	flame_tree_free(tree);
}

/* Seven modules, in any order of coming: the five with the most samples. */
static void test_places(void)
{
	static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g"};
	static const uint64_t samples[] = {3, 9, 1, 7, 5, 9, 4};
	static const char *const want[] = {"b", "f", "d", "e", "g"};
	struct accounting counted = {0};

	accounting_add_incomplete(&counted, "why", 38);
	for (int i = 0; i < 7; i++)
		accounting_add_place(&counted, names[i], "", samples[i]);
	CHECK_NUMBER(counted.incomplete_by[0].module_count, ACCOUNTING_PLACES);
	for (int i = 0; i < ACCOUNTING_PLACES; i++)
		CHECK_TEXT(counted.incomplete_by[0].modules[i].name, want[i]);
	CHECK_NUMBER(counted.incomplete_by[0].modules[4].samples, 4);
	for (int i = 0; i < 2 * ACCOUNTING_REASONS; i++)
		accounting_add_incomplete(&counted, "more", 1);
	CHECK_NUMBER(counted.incomplete_count, ACCOUNTING_REASONS);
}

/* As a header has it: in ASCII, and shorter. */
static void test_header(void)
{
	struct accounting counted = {0};
	struct buffer out;
	struct json json;

	accounting_add_incomplete(&counted, "caf\xc3\xa9 \xf0\x9f\x94\xa5 \xff", 2);
	accounting_add_place(&counted, "app", "ab", 2);
	buffer_init(&out, 4096);
	json = (struct json){.out = &out, .is_ascii = true};
	accounting_json(&json, &counted, ACCOUNTING_WITHOUT_MODULES);
	check_text(&out, "{\"value\":0,\"samples\":0,\"taken\":0,\"lost\":0,"
			 "\"lost_by\":{\"unexplained\":0},\"unwind_incomplete\":0,"
			 "\"incomplete_by\":[{\"reason\":\"caf\\u00e9 \\ud83d\\udd25 \\ufffd\","
			 "\"samples\":2}],\"nameless_value\":0,\"nameless_modules\":0,\"unsymbolized\":0,\"cut\":0,\"hosts\":0}");
	buffer_init(&out, 4096);
	json = json_start(&out);
	accounting_json(&json, &counted, ACCOUNTING_WITHOUT_REASONS);
	check_text(&out, "{\"value\":0,\"samples\":0,\"taken\":0,\"lost\":0,"
			 "\"lost_by\":{\"unexplained\":0},\"unwind_incomplete\":0,"
			 "\"nameless_value\":0,\"nameless_modules\":0,\"unsymbolized\":0,\"cut\":0,\"hosts\":0}");
}

static void test_folded(void)
{
	struct flame_tree *tree = make_tree();
	struct flame_answer answer = answer_of(tree);
	struct buffer out;

	flame_tree_cut(tree, 100);
	buffer_init(&out, 1 << 20);
	CHECK(flame_folded(&answer, &out));
	check_text(&out, "nginx;main 5\n"
			 "nginx;main;a_b_;vfs_read_[k];vmlinux+0x1a_[k] 9007199254740993\n");
	flame_tree_free(tree);
}

/* Nodes that differ in what folded does not show are one stack, on one line. */
static void test_folded_joins(void)
{
	struct flame_tree *tree = flame_tree_new(100);
	struct flame_answer answer = answer_of(tree);
	struct flame_frame frames[] = {
		{.name = "f", .file = "", .module = 1, .kind = FRAME_native},
		{.name = "g", .file = "", .module = 1, .kind = FRAME_native},
	};
	struct buffer out;

	add(tree, frames, 2, 1);
	frames[0].module = 2;
	add(tree, frames, 2, 2);
	frames[1].kind = FRAME_inline;
	add(tree, frames, 2, 4);
	frames[1].kind = FRAME_kernel;
	add(tree, frames, 2, 8);
	add(tree, frames, 0, 16);
	flame_tree_cut(tree, 100);
	buffer_init(&out, 1 << 20);
	CHECK(flame_folded(&answer, &out));
	check_text(&out, "all 16\nf;g_[k] 8\nf;g 7\n");
	flame_tree_free(tree);
}

static void test_texts(void)
{
	static const struct {
		const char *raw, *json;
	} rows[] = {
		{"plain", "\"plain\""},
		{"", "\"\""},
		{"q\"\\", "\"q\\\"\\\\\""},
		{"\x01\x1f\x7f", "\"\\u0001\\u001f\\u007f\""},
		{"\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\xa5",
		 "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\xa5\""},
		{"a\xff"
		 "b",
		 "\"a\xef\xbf\xbd"
		 "b\""},
		{"\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\""},                 /* overlong */
		{"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* surrogate */
		{"\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\""},                 /* cut short */
		{"\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct buffer out;
		struct json json;

		buffer_init(&out, 1000);
		json = json_start(&out);
		json_string(&json, rows[i].raw);
		check_text(&out, rows[i].json);
	}
}

static void test_numbers(void)
{
	struct buffer out;
	struct json json;

	buffer_init(&out, 1000);
	json = json_start(&out);
	json_open(&json, '[');
	json_uint(&json, 0);
	json_uint(&json, UINT64_MAX);
	json_int(&json, INT64_MIN);
	json_int(&json, -1);
	json_share(&json, 0.25);
	json_close(&json, ']');
	check_text(&out, "[0,18446744073709551615,-9223372036854775808,-1,0.250000]");
}

static void test_limit(void)
{
	struct flame_tree *tree = make_tree();
	struct flame_answer answer = answer_of(tree);
	struct buffer out;

	buffer_init(&out, 100);
	CHECK(!flame_json(&answer, &out));
	buffer_release(&out);
	buffer_init(&out, 10);
	CHECK(!flame_folded(&answer, &out));
	buffer_release(&out);
	flame_tree_free(tree);
}

int main(void)
{
	test_json();
	test_signatures();
	test_places();
	test_header();
	test_folded();
	test_folded_joins();
	test_texts();
	test_numbers();
	test_limit();
	return checks_done();
}

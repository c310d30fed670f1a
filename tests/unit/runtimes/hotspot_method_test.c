/* SPDX-License-Identifier: Apache-2.0 */
/* Methods in made-up memory, laid out as 8's, 17's and 25's are: their names, files and lines, and
 * what is none. tests/tools/hotspot_name.c compares running JVMs'. */
#include "node-agent/runtimes/hotspot_method.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/unit/runtimes/hotspot_image.h"

static enum hotspot_state image_read(struct image *image, const struct hotspot_layout *layout,
				     struct hotspot_method **method)
{
	const struct python_memory memory = {read_image, image};

	return hotspot_method_read(&memory, layout, BASE + METHOD,
				   hotspot_cookie(BASE + POOL, CODE_SIZE, 3, 4), method);
}

static void test_version(unsigned version)
{
	const struct hotspot_layout layout = layout_of(version);
	struct hotspot_method *method;
	struct image image;
	uint16_t cookie;
	const struct python_memory memory = {read_image, &image};

	image_fill(&image, &layout);
	CHECK_NUMBER(image_read(&image, &layout, &method), HOTSPOT_READ);
	CHECK_TEXT(method->name, "a.Main$Inner.run");
	CHECK_TEXT(method->file, "Main.java");
	CHECK_NUMBER(method->lines_bytes, 5);
	CHECK_NUMBER(hotspot_method_line(method, 0), 10);
	CHECK_NUMBER(hotspot_method_line(method, 4), 10);
	CHECK_NUMBER(hotspot_method_line(method, 5), 11);
	CHECK(!method->is_name_cut && !method->is_lines_cut);
	free(method);
	CHECK(hotspot_method_cookie(&memory, &layout, BASE + METHOD, &cookie));
	CHECK_NUMBER(cookie, hotspot_cookie(BASE + POOL, CODE_SIZE, 3, 4));
	CHECK(!hotspot_method_cookie(&memory, &layout, 8, &cookie));
	put_symbol(&image, &layout, SOURCE, "M.scala");
	put_symbol(&image, &layout, NAME, "$plus$plus");
	CHECK_NUMBER(image_read(&image, &layout, &method), HOTSPOT_READ);
	CHECK_TEXT(method->name, "a.Main$Inner.++");
	free(method);
	put(&image, version == 8 ? KLASS + 64 : POOL + 48, 0, 2);
	put(&image, CONST + layout.const_flags, 0, 2);
	CHECK_NUMBER(image_read(&image, &layout, &method), HOTSPOT_READ);
	CHECK_TEXT(method->file, "");
	CHECK_NUMBER(hotspot_method_line(method, 0), 0);
	free(method);
}

static void test_strange(void)
{
	static const struct {
		const char *what;
		size_t at, bytes;
		uint64_t value;
		enum hotspot_state state;
	} rows[] = {
		{"no ConstMethod", METHOD + 8, 8, 0, HOTSPOT_UNREAD},
		{"one at no address", METHOD + 8, 8, 1ULL << 60, HOTSPOT_UNREAD},
		{"another name", CONST + 40, 2, 2, HOTSPOT_GONE},
		{"another class' constants", CONST + 8, 8, BASE, HOTSPOT_GONE},
		{"fewer constants", POOL + 40, 4, 3, HOTSPOT_UNREAD},
		{"a class at no address", POOL + 24, 8, 7, HOTSPOT_UNREAD},
		{"no class", POOL + 24, 8, 0, HOTSPOT_UNREAD},
		{"a name that is too long", NAME, 4, 0xffff0001, HOTSPOT_READ},
		{"smaller than its code", CONST + 24, 4, 1, HOTSPOT_READ},
		{"larger than memory", CONST + 24, 4, 0xffffffff, HOTSPOT_UNREAD},
		{"a file that is no constant", POOL + 48, 2, 9, HOTSPOT_READ},
		{"a file that is no symbol", POOL + 48, 2, 2, HOTSPOT_UNREAD},
	};
	const struct hotspot_layout layout = layout_of(17);
	struct hotspot_method *method;
	struct image image;
	unsigned reads, wrong = 0;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		image_fill(&image, &layout);
		put(&image, rows[i].at, rows[i].value, rows[i].bytes);
		check_report(image_read(&image, &layout, &method) == rows[i].state, rows[i].what,
			     __FILE__, __LINE__);
		free(method);
	}
	image_fill(&image, &layout);
	image_read(&image, &layout, &method);
	free(method);
	reads = image.reads;
	for (unsigned read = 2; read <= reads; read++) {
		image_fill(&image, &layout);
		image.change_at = read;
		wrong += image_read(&image, &layout, &method) != HOTSPOT_GONE;
		free(method);
	}
	CHECK(reads > 8);
	CHECK_NUMBER(wrong, 0);
}

int main(void)
{
	test_version(8);
	test_version(17);
	test_version(25);
	test_strange();
	return checks_done();
}

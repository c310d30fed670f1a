/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/flamegraph/top_table.h"

#include "tests/check.h"

static struct flame_frame frame(const char *name, uint32_t line)
{
	return (struct flame_frame){
		.name = name, .file = "f.c", .line = line, .module = 1, .kind = FRAME_native};
}

static const struct top_function *find(const struct top_table *table, const char *name)
{
	for (size_t i = 0; i < table->count; i++)
		if (!strcmp(table->functions[i].frame.name, name))
			return &table->functions[i];
	return NULL;
}

/* main → f → f → f is one stack: f's total counts it once. */
static void test_recursion(void)
{
	struct top_table *table = top_table_new(100);
	struct flame_frame group = frame("process", 0);
	struct flame_frame frames[5] = {group, frame("main", 3), frame("f", 1), frame("f", 1),
					frame("f", 2)};

	frames[0].kind = FRAME_group;
	CHECK(top_table_add(table, frames, 5, 100, 10));
	CHECK(top_table_add(table, frames, 2, 7, 1));
	CHECK_NUMBER(table->count, 2);
	CHECK_NUMBER(find(table, "f")->total, 100);
	CHECK_NUMBER(find(table, "f")->self, 100);
	CHECK_NUMBER(find(table, "f")->frame.line, 2); /* where it ran, not where it called */
	CHECK_NUMBER(find(table, "main")->total, 107);
	CHECK_NUMBER(find(table, "main")->self, 7);
	CHECK_NUMBER(find(table, "main")->total_samples, 11);
	top_table_sort(table, false);
	CHECK_TEXT(table->functions[0].frame.name, "f");
	top_table_sort(table, true);
	CHECK_TEXT(table->functions[0].frame.name, "main");
	top_table_free(table);
}

static void test_lines_and_kinds(void)
{
	struct top_table *table = top_table_new(100);
	struct flame_frame a = frame("g", 10), b = frame("g", 20), other = frame("g", 30);
	struct flame_frame incomplete = frame("[incomplete: x]", 0);

	b.kind = FRAME_inline; /* inlined or not, the same function */
	CHECK(top_table_add(table, &a, 1, 5, 1));
	CHECK(top_table_add(table, &b, 1, 90, 1));
	CHECK(top_table_add(table, &a, 1, 5, 1));
	CHECK_NUMBER(table->count, 1);
	CHECK_NUMBER(table->functions[0].frame.line, 20);
	other.module = 2; /* another file's function of that name */
	CHECK(top_table_add(table, &other, 1, 1, 1));
	CHECK_NUMBER(table->count, 2);
	incomplete.kind = FRAME_incomplete;
	CHECK(top_table_add(table, &incomplete, 1, 1, 1));
	CHECK_NUMBER(table->count, 2);
	top_table_free(table);
	top_table_free(NULL);
}

static void test_limit(void)
{
	struct top_table *table = top_table_new(1);
	struct flame_frame a = frame("a", 1), b = frame("b", 1);

	CHECK(top_table_add(table, &a, 1, 1, 1));
	CHECK(!top_table_add(table, &b, 1, 1, 1));
	top_table_free(table);
}

int main(void)
{
	test_recursion();
	test_lines_and_kinds();
	test_limit();
	return checks_done();
}

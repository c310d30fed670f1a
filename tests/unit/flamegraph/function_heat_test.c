/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/flamegraph/function_heat.h"

#include "tests/check.h"

static struct flame_frame frame(const char *name, enum frame_kind kind)
{
	return (struct flame_frame){.name = name, .file = "", .module = 1, .kind = kind};
}

static const struct top_function functions[] = {
	{.frame = {.name = "f", .file = "", .module = 1, .kind = FRAME_native}},
	{.frame = {.name = "main", .file = "", .module = 1, .kind = FRAME_native}},
};
static const struct top_function *const rows[] = {&functions[0], &functions[1]};

static struct function_heat three_columns(bool by_total)
{
	struct function_heat heat = {.first_ms = 60000,
				     .column_ms = 60000,
				     .columns = 3,
				     .rows = 2,
				     .by_total = by_total,
				     .functions = rows};

	CHECK(function_heat_init(&heat));
	return heat;
}

/* main → f → f, main, main → g, [incomplete], each in a step of its own or with another. */
static void add_all(struct function_heat *heat)
{
	struct flame_frame stack[] = {frame("api", FRAME_group), frame("main", FRAME_native),
				      frame("f", FRAME_native), frame("f", FRAME_inline)};
	struct flame_frame g[] = {frame("main", FRAME_native), frame("g", FRAME_native)};
	struct flame_frame none[] = {frame("f", FRAME_native), frame("[x]", FRAME_incomplete)};

	function_heat_add(heat, stack, 4, 60000, 100, 10);
	function_heat_add(heat, stack, 4, 60000, 7, 1);
	function_heat_add(heat, stack, 2, 60000, 3, 1);
	function_heat_add(heat, g, 2, 180000, 50, 5);
	function_heat_add(heat, none, 2, 120000, 9, 2);
	function_heat_add(heat, none, 0, 120000, 1, 1);
	function_heat_add(heat, stack, 4, 59999, 1000, 1);  /* before */
	function_heat_add(heat, stack, 4, 240000, 1000, 1); /* after */
}

static void check_row(const struct heat_value *cells, uint64_t a, uint64_t b, uint64_t c)
{
	CHECK_NUMBER(cells[0].value, a);
	CHECK_NUMBER(cells[1].value, b);
	CHECK_NUMBER(cells[2].value, c);
}

static void test_self(void)
{
	struct function_heat heat = three_columns(false);

	add_all(&heat);
	check_row(function_heat_row(&heat, 0), 107, 0, 0);
	check_row(function_heat_row(&heat, 1), 3, 0, 0);
	check_row(function_heat_other(&heat), 0, 10, 50);
	check_row(function_heat_all(&heat), 110, 10, 50);
	CHECK_NUMBER(function_heat_row(&heat, 0)[0].samples, 11);
	function_heat_release(&heat);
}

static void test_total(void)
{
	struct function_heat heat = three_columns(true);

	add_all(&heat);
	check_row(function_heat_row(&heat, 0), 107, 9, 0); /* twice in a stack counts once */
	check_row(function_heat_row(&heat, 1), 110, 0, 50);
	check_row(function_heat_other(&heat), 0, 1, 0);
	check_row(function_heat_all(&heat), 110, 10, 50);
	function_heat_release(&heat);
}

/* A function of another module, and a label of that name, are no rows' function. */
static void test_same_names(void)
{
	struct function_heat heat = three_columns(true);
	struct flame_frame stack[] = {frame("f", FRAME_group), frame("f", FRAME_native)};

	stack[1].module = 2;
	function_heat_add(&heat, stack, 2, 60000, 5, 1);
	check_row(function_heat_row(&heat, 0), 0, 0, 0);
	check_row(function_heat_other(&heat), 5, 0, 0);
	function_heat_release(&heat);
}

static void test_no_rows(void)
{
	struct function_heat heat = {.column_ms = 1000, .columns = 1};
	struct flame_frame f = frame("f", FRAME_native);

	CHECK(function_heat_init(&heat));
	CHECK_NUMBER(function_heat_cells(1, 0), 2);
	function_heat_add(&heat, &f, 1, 999, 5, 1);
	CHECK_NUMBER(function_heat_other(&heat)[0].value, 5);
	function_heat_release(&heat);
	function_heat_release(&heat);
}

int main(void)
{
	test_self();
	test_total();
	test_same_names();
	test_no_rows();
	return checks_done();
}

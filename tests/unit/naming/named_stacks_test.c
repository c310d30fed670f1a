/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of addresses → stacks of names, with a symbolizer that is a table of this test. */
#include "symbol-server/naming/named_stacks.h"

#include "symbol-server/naming/demangle.h"
#include "symbol-server/naming/idle_waits.h"
#include "tests/check.h"
#include "tests/unit/naming/made_up_symbols.h"

/* leaf first */
static const uint32_t full[] = {KERNEL, WORK, MAIN};
static const uint32_t broken[] = {NOWHERE, ANON, INCOMPLETE};
static const uint32_t python[] = {PYTHON, UNKNOWN, OTHER};
static struct result_stack stacks[] = {
	{0, "t1", 0, full, 3, 10, 1000},
	{1, "t2", 0, broken, 3, 3, 300},
	{0, "", 0, python, 3, 1, 100},
};

static const char *const label_names[] = {"host", "process"};
static const char *const first_values[] = {"h1", "nginx"};
static const char *const second_values[] = {"h1", "redis"};
static struct series_labels series[] = {{label_names, first_values, 2},
					{label_names, second_values, 2}};

static struct samples_result result = {.modules = modules,
				       .module_count = 4,
				       .locations = locations,
				       .location_count = LOCATIONS,
				       .stacks = stacks,
				       .stack_count = 3,
				       .series = series,
				       .series_count = 2};

/* ---- looking at what comes out ---- */

#define KIND_TEXT(name_) #name_,
static const char *const kinds[] = {FRAME_KINDS(KIND_TEXT)};

static bool collect(void *context, const struct flame_frame *frames, size_t depth, uint64_t value,
		    uint64_t samples)
{
	struct buffer *out = context;

	(void)samples;
	for (size_t i = 0; i < depth; i++)
		buffer_printf(out, "%s%s(%s)%s%s", i ? ";" : "", frames[i].name,
			      kinds[frames[i].kind], *frames[i].file ? "@" : "", frames[i].file);
	buffer_printf(out, " %llu\n", (unsigned long long)value);
	return true;
}

static struct stack_totals show(const struct stack_view *view, const char *want)
{
	struct error err = {0};
	struct named_stacks *named = named_stacks_new(&result, &symbolizer, view, &err);
	struct stack_totals totals = {0};
	struct buffer out;

	buffer_init(&out, 1 << 16);
	if (CHECK(named && named_stacks_each(named, collect, &out, &totals, &err))) {
		buffer_append_char(&out, 0);
		CHECK_TEXT((const char *)out.bytes, want);
	}
	named_stacks_free(named);
	buffer_release(&out);
	return totals;
}

static const char *const by_process[] = {"process"};

/* ---- idle waits ---- */

/* Where the store's tree of stacks is walked it is the same: test_nodes(). */
static void test_idle(void)
{
	struct stack_view view = {.groups = by_process, .group_count = 1, .folds_idle = true};
	static const char *const root[] = {"redis", "[idle]"};
	struct stack_totals totals;

	CHECK(idle_waits_has_function("ep_poll") && idle_waits_has_function("unix_accept") &&
	      idle_waits_has_function("__pthread_clockjoin_ex"));
	CHECK(!idle_waits_has_function("futex_wait") && !idle_waits_has_function("") &&
	      !idle_waits_has_function("pthread_mutex_lock") && !idle_waits_has_function("zzz"));
	CHECK(idle_waits_has_type("off-cpu") && !idle_waits_has_type("on-cpu"));
	locations[ANON] = (struct result_location){
		LOCATION_NAMED, UINT32_MAX, 0, "do_epoll_wait", "", "kernel", 0};
	totals = show(&view, "nginx(group);main(native)@main.c;work<int>(native)@work.c;"
			     "leaf(inline)@leaf.h;vfs_read(kernel) 1000\n"
			     "redis(group);[idle](idle) 300\n"
			     "nginx(group);main(native)@main.c;[unknown](unresolved);"
			     "handler(interpreter)@app.py 100\n");
	CHECK_NUMBER(totals.idle_value, 300);
	CHECK_NUMBER(totals.idle_samples, 3);
	CHECK_NUMBER(totals.value, 1400);
	view.root = root;
	view.root_depth = 2;
	show(&view, "redis(group);[idle](idle) 300\n");
	locations[ANON] =
		(struct result_location){LOCATION_ANONYMOUS, UINT32_MAX, 0, "", "", "", 0};
}

/* ---- overloads ---- */

static bool goes_on(void *context)
{
	(void)context;
	return true;
}

/* "name[signature] total" of all nodes but the root. */
static void show_tree(const struct stack_view *view, const char *want)
{
	static struct result_location places[] = {
		{LOCATION_NATIVE, 0, 0x40, "", "", "", 0},
		{LOCATION_NATIVE, 0, 0x41, "", "", "", 0},
		{LOCATION_NATIVE, 0, 0x42, "", "", "", 0},
		{LOCATION_NATIVE, 0, 0x20, "", "", "", 0},
	};
	static const uint32_t by_location[][2] = {{3, 0}, {3, 1}, {3, 2}};
	static struct result_stack runs[] = {{0, "", 0, by_location[0], 2, 1, 1000},
					     {0, "", 0, by_location[1], 2, 1, 200},
					     {0, "", 0, by_location[2], 2, 1, 30}};
	struct samples_result of = result;
	struct stack_totals totals;
	struct flame_tree *tree = flame_tree_new(100);
	struct named_stacks *named;
	struct buffer out;

	of.locations = places;
	of.location_count = 4;
	of.stacks = runs;
	of.stack_count = 3;
	named = named_stacks_new(&of, &symbolizer, view, NULL);
	buffer_init(&out, 1 << 16);
	CHECK(named_stacks_tree(named, tree, false, (struct flame_limit){0}, goes_on, NULL, &totals,
				NULL));
	flame_tree_cut(tree, 100);
	for (size_t i = 1; i < tree->count; i++) {
		const struct flame_node *node = &tree->nodes[i];

		buffer_printf(&out, "%s[%s] %llu\n", node->frame.name,
			      node->frame.signature ? node->frame.signature : "",
			      (unsigned long long)node->total);
	}
	buffer_append_char(&out, 0);
	CHECK_TEXT((const char *)out.bytes, want);
	buffer_release(&out);
	named_stacks_free(named);
	flame_tree_free(tree);
}

static void test_overloads(void)
{
	static const char *const all[] = {"run"}, *const one[] = {"run(long)"};
	struct stack_view view = {0};

	show_tree(&view, "run[run(int)] 1030\nrun[run(long)] 200\nwork<int>[] 1030\n"
			 "work<int>[] 200\nleaf[] 1030\nleaf[] 200\n");
	view.root_depth = 1;
	view.root = all;
	show_tree(&view, "run[run(int)] 1030\nrun[run(long)] 200\nwork<int>[] 1030\n"
			 "work<int>[] 200\nleaf[] 1030\nleaf[] 200\n");
	view.root = one;
	show_tree(&view, "run[run(long)] 200\nwork<int>[] 200\nleaf[] 200\n");
	view = (struct stack_view){.joins_names = true};
	show_tree(&view, "run[] 1230\nwork<int>[] 1230\nleaf[] 1230\n");
	view = (struct stack_view){.demangle = DEMANGLE_SIMPLE};
	show_tree(&view, "run[] 1230\nwork[] 1230\nleaf[] 1230\n");
	view = (struct stack_view){.demangle = DEMANGLE_NONE};
	show_tree(&view, "_Z3runi[] 1000\n_Z3runl[] 200\n_Z3runi.cold[] 30\nwork<int>[] 1000\n"
			 "work<int>[] 200\nwork<int>[] 30\nleaf[] 1000\nleaf[] 200\nleaf[] 30\n");
}

static void test_shape(void)
{
	struct stack_view view = {.groups = by_process, .group_count = 1};
	struct stack_totals totals;

	lookups = 0;
	totals = show(
		&view,
		"nginx(group);main(native)@main.c;work<int>(native)@work.c;leaf(inline)@leaf.h;"
		"vfs_read(kernel) 1000\n"
		"redis(group);[incomplete: code without frame pointers](incomplete);"
		"[anon](unresolved);libx.so+0xabc(unresolved) 300\n"
		"nginx(group);main(native)@main.c;[unknown](unresolved);"
		"handler(interpreter)@app.py 100\n");
	CHECK_NUMBER(totals.value, 1400);
	CHECK_NUMBER(totals.samples, 14);
	CHECK_NUMBER(totals.unwind_incomplete, 3);
	CHECK_NUMBER(totals.unsymbolized, 4);
	CHECK_NUMBER(totals.nameless_value, 300); /* the one in python has such a caller only */
	CHECK_NUMBER(totals.nameless_samples, 3);
	CHECK_NUMBER(totals.nameless_modules, 1);
	CHECK_NUMBER(lookups, 5); /* each location with a table once */
	CHECK_NUMBER(symbolizer.wanted, 1);
	CHECK_NUMBER(symbolizer.weight, 3);
	CHECK(symbolizer.taken == 2 && symbolizer.released == 2);
}

/* ---- why stacks are incomplete ---- */

enum { SECOND_DAY = LOCATIONS, MARKER, KERNEL_TOO, PLACES };

static struct result_location places[PLACES];
static const uint32_t in_app[] = {NOWHERE, MAIN, INCOMPLETE};       /* stopped in app */
static const uint32_t in_app_again[] = {WORK, OTHER, SECOND_DAY};   /* the same, another day */
static const uint32_t in_library[] = {MAIN, NOWHERE, INCOMPLETE};   /* in libx.so */
static const uint32_t in_anonymous[] = {MAIN, ANON, INCOMPLETE};    /* in none */
static const uint32_t only_kernel[] = {KERNEL, MARKER};             /* in none */
static const uint32_t script[] = {KERNEL, NOWHERE, PYTHON, MARKER}; /* in libx.so */
static struct result_stack incomplete_stacks[] = {
	{0, "", 0, in_app, 3, 5, 500},       {0, "", 0, in_app_again, 3, 6, 600},
	{0, "", 0, in_library, 3, 20, 2000}, {1, "", 0, in_anonymous, 3, 7, 700},
	{0, "", 0, only_kernel, 2, 100, 9},  {1, "", 0, script, 4, 1, 100},
	{0, "", 0, full, 3, 1000, 1000},
};

static void tell_incomplete(const struct stack_view *view, const char *want)
{
	struct samples_result of = result;
	struct accounting accounting = {0};
	struct stack_totals totals;
	struct named_stacks *named;
	struct buffer out;

	of.locations = places;
	of.location_count = PLACES;
	of.stacks = incomplete_stacks;
	of.stack_count = sizeof incomplete_stacks / sizeof *incomplete_stacks;
	named = named_stacks_new(&of, &symbolizer, view, NULL);
	buffer_init(&out, 1 << 16);
	for (int i = 0; i < 2; i++) { /* the second time is not added to the first */
		buffer_clear(&out);
		CHECK(named_stacks_each(named, collect, &out, &totals, NULL));
	}
	buffer_clear(&out);
	named_stacks_incomplete(named, &accounting);
	for (unsigned i = 0; i < accounting.incomplete_count; i++) {
		const struct incomplete_reason *reason = &accounting.incomplete_by[i];

		buffer_printf(&out, "%s %d:", reason->reason, (int)reason->samples);
		for (unsigned j = 0; j < reason->module_count; j++)
			buffer_printf(&out, " %s/%s %d", reason->modules[j].name,
				      reason->modules[j].build_id, (int)reason->modules[j].samples);
		buffer_append_char(&out, '\n');
	}
	buffer_append_char(&out, 0);
	CHECK_TEXT((const char *)out.bytes, want);
	buffer_release(&out);
	named_stacks_free(named);
}

static void test_incomplete(void)
{
	struct pattern *pattern = pattern_new("vfs_read", NULL);
	struct stack_view view = {0};

	memcpy(places, locations, sizeof locations);
	places[SECOND_DAY] = places[INCOMPLETE];
	places[MARKER] = (struct result_location){
		LOCATION_INCOMPLETE, UINT32_MAX, 0, "as its sender says", "", "", 0};
	places[KERNEL_TOO] = places[KERNEL];
	tell_incomplete(&view,
			"as its sender says 101: libx.so/02000000 1\n"
			"code without frame pointers 38: libx.so/02000000 20 app/01000000 11\n");
	view.invert = true;
	view.ignore = pattern; /* of the stacks that are shown */
	tell_incomplete(&view,
			"code without frame pointers 38: libx.so/02000000 20 app/01000000 11\n");
	pattern_free(pattern);
}

/* More sentences than there are places: the last place has the rest. */
static void test_many_reasons(void)
{
	enum { MANY = 50 };
	static struct result_location many[MANY + 1];
	static struct result_stack many_stacks[MANY];
	static uint32_t indices[MANY][2];
	static char sentences[MANY][16];
	struct stack_view view = {0};
	struct samples_result of = result;
	struct accounting accounting = {0};
	struct stack_totals totals;
	struct named_stacks *named;
	struct buffer out;

	many[MANY] = locations[MAIN];
	for (uint32_t i = 0; i < MANY; i++) {
		snprintf(sentences[i], sizeof sentences[i], "reason %u", i);
		many[i] = (struct result_location){
			LOCATION_INCOMPLETE, UINT32_MAX, 0, sentences[i], "", "", 0};
		indices[i][0] = MANY;
		indices[i][1] = i;
		many_stacks[i] = (struct result_stack){0, "", 0, indices[i], 2, 2, 2};
	}
	of.locations = many;
	of.location_count = MANY + 1;
	of.stacks = many_stacks;
	of.stack_count = MANY;
	buffer_init(&out, 1 << 16);
	named = named_stacks_new(&of, &symbolizer, &view, NULL);
	CHECK(named_stacks_each(named, collect, &out, &totals, NULL));
	named_stacks_incomplete(named, &accounting);
	CHECK_NUMBER(accounting.incomplete_count, ACCOUNTING_REASONS);
	CHECK_TEXT(accounting.incomplete_by[0].reason, "other reasons");
	CHECK_NUMBER(accounting.incomplete_by[0].samples, 2 * (MANY - ACCOUNTING_REASONS + 1));
	CHECK_NUMBER(accounting.incomplete_by[1].samples, 2);
	named_stacks_free(named);
	buffer_release(&out);
}

static bool count_down(void *context)
{
	unsigned *left = context;

	return *left && (*left)--;
}

/* Stacks that are not shown take time as well: who asked may leave, or the time be over. */
static void test_asks_for_each(void)
{
	struct pattern *pattern = pattern_new("no such frame", NULL);
	unsigned left = 1;
	struct stack_view view = {.focus = pattern, .goes_on = count_down, .context = &left};
	struct stack_totals totals;
	struct error err = {0};
	struct named_stacks *named;
	struct buffer out;

	error_set(&err, ERROR_BUSY, "as who is asked says it");
	CHECK(!named_stacks_new(&result, &symbolizer, &view, &err)); /* naming takes time, too */
	CHECK_NUMBER(err.kind, ERROR_BUSY);
	view.goes_on = NULL;
	named = named_stacks_new(&result, &symbolizer, &view, NULL);
	view.goes_on = count_down;
	left = (unsigned)result.stack_count;
	buffer_init(&out, 1 << 16);
	CHECK(named_stacks_each(named, collect, &out, &totals, NULL));
	CHECK_NUMBER(left, 0);
	CHECK_NUMBER(out.length, 0);
	left = 1;
	CHECK(!named_stacks_each(named, collect, &out, &totals, NULL));
	CHECK_NUMBER(out.length, 0);
	named_stacks_free(named);
	buffer_release(&out);
	pattern_free(pattern);
}

static void test_modules(void)
{
	struct stack_view view = {0};
	struct named_stacks *named = named_stacks_new(&result, &symbolizer, &view, NULL);
	uint32_t count;
	const struct flame_module *found = named_stacks_modules(named, &count);

	CHECK_NUMBER(count, 3);
	CHECK_TEXT(found[0].name, "app");
	CHECK_TEXT(found[0].build_id, "01000000");
	CHECK_NUMBER(named_stacks_unsymbolized(named)[0], 0);
	CHECK_NUMBER(named_stacks_unsymbolized(named)[1], 3);
	named_stacks_free(named);
}

static void test_views(void)
{
	static const char *const groups[] = {"container", "thread"};
	static const char *const root[] = {"nginx", "main", "work<int>"};
	struct pattern *pattern = pattern_new("^(work|leaf)", NULL);
	struct stack_view view = {.groups = groups, .group_count = 2, .focus = pattern};

	show(&view, "[no container](group);t1(group);main(native)@main.c;work<int>(native)@work.c;"
		    "leaf(inline)@leaf.h;vfs_read(kernel) 1000\n");
	view = (struct stack_view){.hide = pattern, .demangle = DEMANGLE_NONE};
	show(&view,
	     "_Z4mainv(native)@main.c;vfs_read(kernel) 1000\n"
	     "[incomplete: code without frame pointers](incomplete);[anon](unresolved);"
	     "libx.so+0xabc(unresolved) 300\n"
	     "_Z4mainv(native)@main.c;[unknown](unresolved);handler(interpreter)@app.py 100\n");
	view = (struct stack_view){
		.ignore = pattern, .groups = by_process, .group_count = 1, .invert = true};
	show(&view, "redis(group);libx.so+0xabc(unresolved);[anon](unresolved);"
		    "[incomplete: code without frame pointers](incomplete) 300\n"
		    "nginx(group);handler(interpreter)@app.py;[unknown](unresolved);"
		    "main(native)@main.c 100\n");
	view = (struct stack_view){
		.groups = by_process, .group_count = 1, .root = root, .root_depth = 3};
	CHECK_NUMBER(show(&view, "nginx(group);main(native)@main.c;work<int>(native)@work.c;"
				 "leaf(inline)@leaf.h;vfs_read(kernel) 1000\n")
			     .samples,
		     10);
	view = (struct stack_view){.focus = pattern, .demangle = DEMANGLE_SIMPLE};
	show(&view, "main(native)@main.c;work(native)@work.c;leaf(inline)@leaf.h;"
		    "vfs_read(kernel) 1000\n");
	pattern_free(pattern);
}

/* Frames by where they are and what they are. The stacks and their sums stay; that one is
 * incomplete is told whatever is left out. */
static void test_left_out(void)
{
	struct pattern *pattern = pattern_new("^(app|libx)", NULL);
	struct stack_view view = {.hide_module = pattern};
	struct stack_totals totals;

	totals = show(&view, "vfs_read(kernel) 1000\n"
			     "[incomplete: code without frame pointers](incomplete);"
			     "[anon](unresolved) 300\n"
			     "[unknown](unresolved);handler(interpreter)@app.py 100\n");
	CHECK_NUMBER(totals.value, 1400);
	CHECK_NUMBER(totals.unsymbolized, 4);
	view = (struct stack_view){.only_module = pattern};
	show(&view, "main(native)@main.c;work<int>(native)@work.c;leaf(inline)@leaf.h 1000\n"
		    "[incomplete: code without frame pointers](incomplete);"
		    "libx.so+0xabc(unresolved) 300\n"
		    "main(native)@main.c 100\n");
	view = (struct stack_view){.hide_kinds = 1 << FRAME_kernel | 1 << FRAME_inline |
						 1 << FRAME_unresolved | 1 << FRAME_incomplete};
	show(&view, "main(native)@main.c;work<int>(native)@work.c 1000\n"
		    "[incomplete: code without frame pointers](incomplete) 300\n"
		    "main(native)@main.c;handler(interpreter)@app.py 100\n");
	pattern_free(pattern);
}

/* An interpreter's own frames: left out they take no time with them and lack no names; shown they
 * are frames of their own kind, whatever is inlined into them. What is native and not marked is
 * native, also the same function. */
static void test_runtime(void)
{
	static const uint32_t innermost[] = {WORK, PYTHON, LOOP, PYTHON, NAMELESS_LOOP, MAIN};
	static const uint32_t nothing_else[] = {NAMELESS_LOOP, LOOP};
	static struct result_stack loops[] = {{0, "", 0, innermost, 6, 2, 20},
					      {0, "", 0, innermost + 2, 4, 1, 7},
					      {0, "", 0, nothing_else, 2, 1, 5}};
	static const char *const shown =
		"main(native)@main.c;libx.so+0xdef(unresolved);handler(interpreter)@app.py;"
		"work<int>(runtime)@work.c;leaf(runtime)@leaf.h;handler(interpreter)@app.py;"
		"work<int>(native)@work.c;leaf(inline)@leaf.h 20\n"
		"main(native)@main.c;libx.so+0xdef(unresolved);handler(interpreter)@app.py;"
		"work<int>(runtime)@work.c;leaf(runtime)@leaf.h 7\n"
		"work<int>(runtime)@work.c;leaf(runtime)@leaf.h;libx.so+0xdef(unresolved) 5\n";
	static const char *const hidden =
		"main(native)@main.c;handler(interpreter)@app.py;handler(interpreter)@app.py;"
		"work<int>(native)@work.c;leaf(inline)@leaf.h 20\n"
		"main(native)@main.c;handler(interpreter)@app.py 7\n"
		" 5\n";
	struct samples_result whole = result;
	struct stack_view view = {.hides_runtime = true};
	struct stack_totals totals;

	result.stacks = loops;
	result.stack_count = 3;
	totals = show(&view, hidden);
	CHECK_NUMBER(totals.value, 32);
	CHECK_NUMBER(totals.unsymbolized, 0);
	CHECK_NUMBER(totals.nameless_samples, 0);
	view = (struct stack_view){.hide_kinds = 1 << FRAME_runtime};
	show(&view, hidden);
	view = (struct stack_view){0};
	totals = show(&view, shown);
	CHECK_NUMBER(totals.value, 32);
	CHECK_NUMBER(totals.unsymbolized, 4);
	CHECK_NUMBER(totals.nameless_samples, 1);
	result = whole;
}

/* Stacks that have a frame of one build, also one that is left out. */
static void test_build(void)
{
	struct build_id app = {.length = 4, .bytes = {1}}, other = {.length = 4, .bytes = {99}};
	struct pattern *pattern = pattern_new("^app", NULL);
	struct stack_view view = {.build = &app};
	struct stack_totals totals;

	totals = show(&view, "main(native)@main.c;work<int>(native)@work.c;"
			     "leaf(inline)@leaf.h;vfs_read(kernel) 1000\n"
			     "main(native)@main.c;[unknown](unresolved);"
			     "handler(interpreter)@app.py 100\n");
	CHECK_NUMBER(totals.value, 1100);
	view.hide_module = pattern;
	CHECK_NUMBER(show(&view, "vfs_read(kernel) 1000\n"
				 "[unknown](unresolved);handler(interpreter)@app.py 100\n")
			     .value,
		     1100);
	view = (struct stack_view){.build = &other};
	CHECK_NUMBER(show(&view, "").value, 0);
	pattern_free(pattern);
}

static void test_simplify(struct arena *arena)
{
	static const char *const rows[][2] = {
		{"main", "main"},
		{"std::vector<int, std::allocator<int> >::push_back", "std::vector::push_back"},
		{"f<(g<1>)0>", "f"},
		{"operator<< <char>", "operator<< <char>"},
		{"A::operator<", "A::operator<"},
		{"A<int>::operator->", "A::operator->"},
		{"myoperator<int>", "myoperator"},
		{"<alloc::vec::Vec<T> as core::ops::Drop>::drop",
		 "<alloc::vec::Vec as core::ops::Drop>::drop"},
		{"alloc::vec::Vec::<u8>::new", "alloc::vec::Vec::new"},
		{"f<int", "f<int"},
		{"std::function<int () const>::operator()", "std::function::operator()"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		CHECK_TEXT(demangle_simple(rows[i][0], arena), rows[i][1]);
}

static void test_root_path(struct arena *arena)
{
	const char *const *names;
	unsigned count;
	char deep[2 * ROOT_FRAMES_MAX + 10] = "";
	struct error err = {0};

	CHECK(root_path_parse("", arena, &names, &count, NULL) && count == 0);
	CHECK(root_path_parse("a;b\\;c;\\\\;x\\y", arena, &names, &count, NULL));
	CHECK_NUMBER(count, 4);
	CHECK_TEXT(names[1], "b;c");
	CHECK_TEXT(names[2], "\\");
	CHECK_TEXT(names[3], "x\\y");
	memset(deep, ';', 2 * ROOT_FRAMES_MAX);
	CHECK(!root_path_parse(deep, arena, &names, &count, &err));
	CHECK(strstr(err.message, "parameter 'root'"));
}

int main(void)
{
	struct arena arena;

	arena_init(&arena, 16 << 20);
	test_shape();
	test_overloads();
	test_idle();
	test_incomplete();
	test_many_reasons();
	test_modules();
	test_asks_for_each();
	test_views();
	test_left_out();
	test_runtime();
	test_build();
	test_simplify(&arena);
	test_root_path(&arena);
	arena_release(&arena);
	return checks_done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of addresses → stacks of names, with a symbolizer that is a table of this test. */
#include "symbol-server/naming/named_stacks.h"

#include <math.h>
#include <stdlib.h>

#include "symbol-server/api/flame_request.h"
#include "symbol-server/api/host_cpus.h"
#include "symbol-server/naming/demangle.h"
#include "symbol-server/naming/idle_waits.h"
#include "tests/check.h"

/* ---- the symbolizer ---- */

struct symbolizer {
	unsigned wanted;
	uint64_t weight;
	unsigned taken, released;
};

static struct symbolizer symbolizer;
static struct symbol_table app_table;
static unsigned lookups;

void symbolizer_want(struct symbolizer *from, const struct build_id *id, const char *name,
		     bool is_gnu, uint64_t samples)
{
	(void)id, (void)name, (void)is_gnu;
	from->wanted++;
	from->weight += samples;
}

struct symbol_table *symbolizer_take_table(struct symbolizer *from, const struct build_id *id,
					   char *reason, size_t room)
{
	(void)reason, (void)room;
	if (id->bytes[0] != 1 && id->bytes[0] != 3)
		return NULL;
	from->taken++;
	return &app_table;
}

void symbol_table_release(struct symbol_table *table)
{
	if (table)
		symbolizer.released++;
}

/* 0x10: main; 0x20: work, with leaf inlined into it; 0x30: a kernel function; 0x40, 0x41, 0x42:
 * overloads; others nothing */
unsigned symbol_table_lookup(const struct symbol_table *table, enum address_base base,
			     uint64_t address, struct symbol_frame frames[SYMBOL_CHAIN_MAX])
{
	(void)table;
	lookups++;
	if (address == 0x10) {
		frames[0] = (struct symbol_frame){"_Z4mainv", "main.c", 5, false};
		return 1;
	}
	if (address == 0x20) {
		frames[0] = (struct symbol_frame){"leaf", "leaf.h", 7, true};
		frames[1] = (struct symbol_frame){"work<int>", "work.c", 9, false};
		return 2;
	}
	if (address >= 0x40 && address <= 0x42) {
		static const char *const names[] = {"_Z3runi", "_Z3runl", "_Z3runi.cold"};

		frames[0] = (struct symbol_frame){names[address - 0x40], "run.c", 1, false};
		return 1;
	}
	if (address == 0x30 && base == ADDRESS_KERNEL_TEXT) {
		frames[0] = (struct symbol_frame){"vfs_read", "", 0, false};
		return 1;
	}
	return 0;
}

void samples_result_free(struct samples_result *result)
{
	(void)result;
}

struct samples_result *samples_query(struct samples_store *store, const struct samples_query *query,
				     struct error *err)
{
	(void)store, (void)query;
	error_set(err, ERROR_NOT_FOUND, "no store here");
	return NULL;
}

bool nothing_explain(struct api *api, struct query_life *life, const struct query *asked,
		     struct nothing *out, struct error *err)
{
	(void)api, (void)life, (void)asked, (void)out, (void)err;
	return true;
}

bool nothing_check_groups(struct api *api, struct query_life *life, const struct query *asked,
			  const struct series_labels *series, uint32_t count, struct error *err)
{
	(void)api, (void)life, (void)asked, (void)series, (void)count, (void)err;
	return true;
}

int profile_type_find(const char *name, size_t length)
{
	(void)name, (void)length;
	return 0;
}

bool profile_type_is_gauge(unsigned number)
{
	(void)number;
	return false;
}

const char *profile_type_unit(unsigned number)
{
	(void)number;
	return "nanoseconds";
}

enum profile_sampling profile_type_sampling(unsigned number)
{
	(void)number;
	return SAMPLING_EVEN;
}

uint64_t host_cpus(struct samples_store *store, const struct host_accounting *hosts,
		   uint32_t host_count, const struct host_step *steps, uint32_t step_count)
{
	(void)store, (void)hosts, (void)host_count, (void)steps, (void)step_count;
	return 0;
}

/* ---- what the store answers ---- */

enum { MAIN, WORK, KERNEL, NOWHERE, ANON, INCOMPLETE, PYTHON, UNKNOWN, OTHER, LOCATIONS };

static struct result_module modules[] = {
	{.id = {4, {1}}, .name = "app"},
	{.id = {4, {2}}, .name = "libx.so"},
	{.id = {4, {3}}, .name = "vmlinux", .base = ADDRESS_KERNEL_TEXT},
	{.id = {4, {1}}, .name = "app"}, /* the same again, from another day */
};

static struct result_location locations[LOCATIONS] = {
	[MAIN] = {LOCATION_NATIVE, 0, 0x10, "", "", "", 0},
	[WORK] = {LOCATION_NATIVE, 0, 0x20, "", "", "", 0},
	[KERNEL] = {LOCATION_KERNEL, 2, 0x30, "", "", "", 0},
	[NOWHERE] = {LOCATION_NATIVE, 1, 0xabc, "", "", "", 0},
	[ANON] = {LOCATION_ANONYMOUS, UINT32_MAX, 0, "", "", "", 0},
	[INCOMPLETE] = {LOCATION_INCOMPLETE, UINT32_MAX, 0, "code without frame pointers", "", "",
			0},
	[PYTHON] = {LOCATION_NAMED, UINT32_MAX, 0, "handler", "app.py", "cpython", 12},
	[UNKNOWN] = {LOCATION_NATIVE, UINT32_MAX, 0x99, "", "", "", 0},
	[OTHER] = {LOCATION_NATIVE, 3, 0x10, "", "", "", 0},
};

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
	CHECK_NUMBER(lookups, 4); /* each location with a table once */
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

/* ---- the same stacks as a tree ---- */

enum { RANDOM_STACKS = 300, RANDOM_NODES = RANDOM_STACKS * 8, RANDOM_DEPTH = 12 };

struct random_stacks {
	struct result_stack listed[RANDOM_STACKS], planted[RANDOM_STACKS];
	uint32_t lists[RANDOM_STACKS][RANDOM_DEPTH];
	struct result_node nodes[RANDOM_NODES];
	uint32_t node_count;
};

static uint32_t random_state;

static uint32_t draw(uint32_t below)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % below;
}

static uint32_t node_of(struct random_stacks *random, uint32_t caller, uint32_t location)
{
	for (uint32_t i = 1; i < random->node_count; i++)
		if (random->nodes[i].caller == caller && random->nodes[i].location == location)
			return i;
	random->nodes[random->node_count] = (struct result_node){caller, location};
	return random->node_count++;
}

/* Leaf first; few locations, so that callers are shared; an incomplete stack says so at its root.
 */
static void make_random(struct random_stacks *random, uint32_t of_series)
{
	random->node_count = 1;
	for (uint32_t i = 0; i < RANDOM_STACKS; i++) {
		uint32_t depth = draw(8), node = 0;

		for (uint32_t k = 0; k < depth; k++) {
			uint32_t location = draw(LOCATIONS);

			if (location == INCOMPLETE && k + 1 < depth)
				location = MAIN;
			random->lists[i][k] = location;
		}
		for (uint32_t k = depth; k--;)
			node = node_of(random, node, random->lists[i][k]);
		random->listed[i] = (struct result_stack){.series = i * of_series / RANDOM_STACKS,
							  .thread = "",
							  .locations = random->lists[i],
							  .depth = depth,
							  .samples = 1 + draw(9),
							  .value = draw(1000)};
		random->planted[i] = random->listed[i];
		random->planted[i].locations = NULL;
		random->planted[i].node = node;
	}
}

struct outcome {
	struct named_stacks *stacks;
	struct flame_tree *tree;
	struct stack_totals totals;
	struct accounting accounting;
};

static void plant(const struct samples_result *from, const struct stack_view *view, bool by_samples,
		  size_t max_nodes, struct outcome *out)
{
	struct error err = {0};

	*out = (struct outcome){.tree = flame_tree_new(100000)};
	out->stacks = named_stacks_new(from, &symbolizer, view, &err);
	CHECK(out->stacks && named_stacks_tree(out->stacks, out->tree, by_samples,
					       (struct flame_limit){.max_nodes = max_nodes},
					       goes_on, NULL, &out->totals, &err));
	named_stacks_incomplete(out->stacks, &out->accounting);
}

/* Sums of squares are added in another order. */
static bool near(double a, double b, double whole)
{
	return fabs(a - b) <= 1e-9 * whole;
}

static void check_same_trees(const struct flame_tree *a, const struct flame_tree *b)
{
	unsigned different = 0;

	CHECK_NUMBER(a->count, b->count);
	for (size_t i = 0; i < a->count && i < b->count; i++)
		different += strcmp(a->nodes[i].frame.name, b->nodes[i].frame.name) ||
			     a->nodes[i].frame.kind != b->nodes[i].frame.kind ||
			     a->nodes[i].frame.module != b->nodes[i].frame.module ||
			     a->nodes[i].frame.line != b->nodes[i].frame.line ||
			     a->nodes[i].parent != b->nodes[i].parent ||
			     a->nodes[i].self != b->nodes[i].self ||
			     a->nodes[i].total != b->nodes[i].total ||
			     a->nodes[i].self_samples != b->nodes[i].self_samples ||
			     a->nodes[i].total_samples != b->nodes[i].total_samples ||
			     !near(a->nodes[i].self_squares, b->nodes[i].self_squares,
				   a->nodes[0].total_squares) ||
			     !near(a->nodes[i].total_squares, b->nodes[i].total_squares,
				   a->nodes[0].total_squares);
	CHECK_NUMBER(different, 0);
}

static void check_same(const struct outcome *a, const struct outcome *b)
{
	uint32_t count, other;

	check_same_trees(a->tree, b->tree);
	CHECK(!memcmp(&a->totals, &b->totals, sizeof(a->totals)));
	named_stacks_modules(a->stacks, &count);
	named_stacks_modules(b->stacks, &other);
	CHECK_NUMBER(count, other);
	CHECK(!memcmp(named_stacks_samples(a->stacks), named_stacks_samples(b->stacks),
		      count * sizeof(uint64_t)));
	CHECK(!memcmp(named_stacks_unsymbolized(a->stacks), named_stacks_unsymbolized(b->stacks),
		      count * sizeof(uint64_t)));
	CHECK(!memcmp(named_stacks_nameless(a->stacks), named_stacks_nameless(b->stacks),
		      count * sizeof(uint64_t)));
	CHECK_NUMBER(a->accounting.incomplete_count, b->accounting.incomplete_count);
}

static void release(struct outcome *outcome)
{
	flame_tree_free(outcome->tree);
	named_stacks_free(outcome->stacks);
}

static bool is_same_way(const struct flame_tree *a, uint32_t x, const struct flame_tree *b,
			uint32_t y)
{
	for (; x && y; x = a->nodes[x].parent, y = b->nodes[y].parent)
		if (strcmp(a->nodes[x].frame.name, b->nodes[y].frame.name) ||
		    a->nodes[x].frame.kind != b->nodes[y].frame.kind ||
		    a->nodes[x].frame.module != b->nodes[y].frame.module)
			return false;
	return !x && !y;
}

/* Every node left is one of the whole tree as it is there; nothing heavier is missing, and what a
 * node has lost is in its "[cut]". */
static void check_nodes(const struct flame_tree *cut, const struct flame_tree *all)
{
	uint64_t least = UINT64_MAX, *below = calloc(cut->count, sizeof(*below)), sum = 0;
	size_t kept = 0, heavier = 0, wrong = 0;

	CHECK(below);
	for (uint32_t i = 0; i < cut->count; i++) {
		const struct flame_node *node = &cut->nodes[i];
		uint32_t at = 0;

		below[node->parent] += i ? node->total : 0;
		if (node->frame.kind == FRAME_cut) {
			sum += node->total;
			continue;
		}
		while (at < all->count && !is_same_way(cut, i, all, at))
			at++;
		wrong += at == all->count || all->nodes[at].total != node->total ||
			 all->nodes[at].self != node->self ||
			 all->nodes[at].self_samples != node->self_samples ||
			 all->nodes[at].total_samples != node->total_samples ||
			 !near(all->nodes[at].self_squares, node->self_squares,
			       all->nodes[0].total_squares);
		least = node->total < least ? node->total : least;
		kept++;
	}
	for (uint32_t i = 0; i < cut->count; i++)
		wrong += cut->nodes[i].total !=
			 cut->nodes[i].self + (cut->nodes[i].first_child ? below[i] : 0);
	for (size_t i = 0; i < all->count; i++)
		heavier += all->nodes[i].total > least;
	CHECK_NUMBER(wrong, 0);
	CHECK(heavier < kept || (kept == 1 && heavier == 0));
	CHECK_NUMBER(cut->cut, sum);
	free(below);
}

/* The cut of a tree of which no more was made than is left is that of the whole tree. */
static void check_cut(const struct samples_result *from, const struct stack_view *view,
		      bool by_samples, size_t most, const struct outcome *whole)
{
	struct outcome part, all;

	plant(from, view, by_samples, most, &part);
	plant(from, view, by_samples, 0, &all);
	CHECK(flame_tree_cut(part.tree, most) && flame_tree_cut(all.tree, most));
	CHECK_NUMBER(part.tree->count, all.tree->count);
	CHECK_NUMBER(part.tree->cut, all.tree->cut);
	CHECK(!memcmp(&part.totals, &all.totals, sizeof(part.totals)));
	check_nodes(part.tree, whole->tree);
	release(&part);
	release(&all);
}

/* Each view of random stacks, as lists and as a tree. */
static void test_nodes(void)
{
	static struct random_stacks random;
	static const char *const groups[] = {"process"};
	static const char *const roots[][2] = {{"api", "main"}, {"main", "leaf"}};
	struct series_labels two[] = {
		{(const char *const[]){"process"}, (const char *const[]){"api"}, 1},
		{(const char *const[]){"process"}, (const char *const[]){"db"}, 1}};
	struct samples_result listed = {.modules = modules,
					.module_count = sizeof(modules) / sizeof(*modules),
					.locations = locations,
					.location_count = LOCATIONS,
					.stack_count = RANDOM_STACKS,
					.series = two,
					.series_count = 2};
	struct result_module many[100] = {0};
	struct error err = {0};
	struct pattern *pattern = pattern_new("leaf|handler", &err);

	for (unsigned i = 0; i < 100; i++) {
		static char names[100][8];

		snprintf(names[i], sizeof(names[i]), "m%u", i);
		many[i] = i < listed.module_count ? modules[i]
						  : (struct result_module){.name = names[i]};
	}

	locations[ANON] = (struct result_location){LOCATION_NAMED, UINT32_MAX, 0, "ep_poll", "",
						   "kernel",       0};
	for (unsigned round = 0; round < 24; round++) {
		struct samples_result planted;
		struct stack_view view = {.groups = groups,
					  .group_count = round & 1,
					  .focus = round % 6 == 2 ? pattern : NULL,
					  .ignore = round % 6 == 3 ? pattern : NULL,
					  .folds_idle = round % 4 >= 2,
					  .hide = round % 6 >= 4 ? pattern : NULL,
					  .root = roots[round & 1 ? 0 : 1],
					  .root_depth = round > 11 ? 1 + round % 2 : 0};
		struct outcome lists, nodes;

		random_state = round;
		make_random(&random, 2);
		if (round == 12) { /* more modules than a word has bits */
			listed.modules = many;
			listed.module_count = 100;
		}
		planted = listed;
		listed.stacks = random.listed;
		planted.stacks = random.planted;
		planted.nodes = random.nodes;
		planted.node_count = random.node_count;
		plant(&listed, &view, round % 3 == 0, 0, &lists);
		plant(&planted, &view, round % 3 == 0, 0, &nodes);
		CHECK(flame_tree_cut(lists.tree, 100000) && flame_tree_cut(nodes.tree, 100000));
		check_same(&lists, &nodes);
		CHECK(view.root_depth || view.focus || view.ignore || view.folds_idle ||
		      nodes.tree->count > 100);
		CHECK(!view.folds_idle || view.root_depth > view.group_count ||
		      nodes.totals.idle_value > 0);
		for (size_t most = 1; most < 400; most += 1 + most / 2)
			check_cut(&planted, &view, round % 3 == 0, most, &nodes);
		release(&lists);
		release(&nodes);
	}
	pattern_free(pattern);
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
	test_build();
	test_nodes();
	test_simplify(&arena);
	test_root_path(&arena);
	arena_release(&arena);
	return checks_done();
}

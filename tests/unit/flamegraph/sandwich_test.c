/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks written as words: "main a f b" has main at the root; sums are made by hand. */
#include "symbol-server/flamegraph/sandwich.h"

#include <stdlib.h>

#include "tests/check.h"

static bool is_f(void *context, const struct flame_frame *frame)
{
	(void)context;
	return frame->name[0] == 'f';
}

/* Names live as long as the program. */
static size_t read_stack(const char *text, struct flame_frame *frames)
{
	static char texts[1 << 16];
	static size_t used;
	char *copy = texts + used;
	size_t depth = 0;

	used += (size_t)snprintf(copy, sizeof texts - used, "%s", text) + 1;
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		frames[depth++] = (struct flame_frame){.name = word,
						       .file = "",
						       .module = FRAME_NO_MODULE,
						       .kind = word[0] == '[' ? FRAME_group
									      : FRAME_native};
	return depth;
}

static void add(struct sandwich *sandwich, const char *text, uint64_t value)
{
	struct flame_frame frames[16];
	size_t depth = read_stack(text, frames);

	CHECK(sandwich_add(sandwich, frames, depth, value * 10, value));
}

/* Total and self of the node at the end of a path below the root; -1: there is none. */
static int64_t at(const struct flame_tree *tree, const char *path, bool self)
{
	struct flame_frame frames[16];
	size_t depth = read_stack(path, frames);
	uint32_t node = 0;

	for (size_t i = 0; i < depth; i++) {
		uint32_t child = tree->nodes[node].first_child;

		while (child && strcmp(tree->nodes[child].frame.name, frames[i].name))
			child = tree->nodes[child].next_sibling;
		if (!child)
			return -1;
		node = child;
	}
	return (int64_t)(self ? tree->nodes[node].self : tree->nodes[node].total);
}

static void test_trees(void)
{
	struct sandwich sandwich;

	CHECK(sandwich_init(&sandwich, 1000, is_f, NULL));
	add(&sandwich, "main a f b", 1);
	add(&sandwich, "main a f", 2);
	add(&sandwich, "main c f b d", 4);
	add(&sandwich, "main f a f b", 8); /* calls itself by way of a */
	add(&sandwich, "main f f", 16);
	add(&sandwich, "[web] main f", 32);
	add(&sandwich, "main a b", 1000); /* not in it */
	CHECK_NUMBER(sandwich.callers->nodes[0].total, 630);
	CHECK_NUMBER(sandwich.callees->nodes[0].total, 630);
	CHECK_NUMBER(at(sandwich.callers, "f", false), 630);
	CHECK_NUMBER(at(sandwich.callers, "f", true), 0);
	CHECK_NUMBER(at(sandwich.callers, "f a main", true), 30);
	CHECK_NUMBER(at(sandwich.callers, "f c main", true), 40);
	CHECK_NUMBER(at(sandwich.callers, "f main", false), 560);
	CHECK_NUMBER(at(sandwich.callers, "f main", true), 240);
	CHECK_NUMBER(at(sandwich.callers, "f main [web]", true), 320);
	CHECK_NUMBER(at(sandwich.callers, "f a f", true), -1);
	CHECK_NUMBER(at(sandwich.callees, "f", true), 340);
	CHECK_NUMBER(at(sandwich.callees, "f b", true), 10);
	CHECK_NUMBER(at(sandwich.callees, "f b d", true), 40);
	CHECK_NUMBER(at(sandwich.callees, "f a f b", true), 80);
	CHECK_NUMBER(at(sandwich.callees, "f f", true), 160);
	CHECK_NUMBER(sandwich.functions->count, 1);
	CHECK_NUMBER(sandwich.functions->functions[0].self, 500); /* 2 + 16 + 32 */
	CHECK_NUMBER(sandwich.functions->functions[0].total, 630);
	CHECK_NUMBER(sandwich.functions->functions[0].total_samples, 63);
	sandwich_release(&sandwich);
}

/* Several functions are wanted: a stack counts at the first one, each function has its own row. */
static void test_several(void)
{
	struct sandwich sandwich;

	CHECK(sandwich_init(&sandwich, 1000, is_f, NULL));
	add(&sandwich, "main f1 f2", 1);
	add(&sandwich, "main f2 x", 2);
	CHECK_NUMBER(sandwich.callees->nodes[0].total, 30);
	CHECK_NUMBER(at(sandwich.callees, "f1 f2", true), 10);
	CHECK_NUMBER(at(sandwich.callees, "f2 x", true), 20);
	CHECK_NUMBER(sandwich.functions->count, 2);
	top_table_sort(sandwich.functions, true);
	CHECK_TEXT(sandwich.functions->functions[0].frame.name, "f2");
	CHECK_NUMBER(sandwich.functions->functions[0].total, 30);
	CHECK_NUMBER(sandwich.functions->functions[0].self, 10);
	CHECK_NUMBER(sandwich.functions->functions[1].total, 10);
	sandwich_release(&sandwich);
}

static void test_limit(void)
{
	struct flame_frame frames[16];
	struct sandwich sandwich;

	CHECK(sandwich_init(&sandwich, 3, is_f, NULL));
	CHECK(!sandwich_add(&sandwich, frames, read_stack("f a b c d", frames), 1, 1));
	sandwich_release(&sandwich);
	sandwich_release(&sandwich);
}

int main(void)
{
	test_trees();
	test_several();
	test_limit();
	return checks_done();
}

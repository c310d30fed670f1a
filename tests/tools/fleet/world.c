/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/tools/fleet/world.h"

#include <dirent.h>
#include <err.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
	MODULES_MADE_UP = 240,
	MODULES_PER_APP = 12,
	MODULES_MAX = 2000,
	DEPTH_MIN = 20,
	DEPTH_MAX = 40,
	KERNEL_PATHS = 40,
	KERNEL_DEPTH = 6,
};

const char *const world_sentences[3] = {"no unwind information", "memory not readable", "too deep"};

uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

uint32_t random_below(uint64_t *state, uint32_t limit)
{
	return (uint32_t)((random_next(state) >> 32) * limit >> 32);
}

bool random_percent(uint64_t *state, double percent)
{
	return percent > 0 && (double)(random_next(state) >> 11) * 0x1p-53 * 100 < percent;
}

const char *world_unit(const char *type)
{
	static const char *const units[][2] = {
		{"on-cpu", "nanoseconds"},        {"off-cpu", "nanoseconds"},
		{"waker", "nanoseconds"},         {"run-queue", "nanoseconds"},
		{"still-blocked", "nanoseconds"}, {"mem-alloc", "bytes"},
		{"mem-inuse", "bytes"},           {"page-fault", "bytes"},
		{"on-gpu", "nanoseconds"},        {"hbm-alloc", "bytes"},
		{"hbm-inuse", "bytes"},           {"rdma", "bytes"},
	};

	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (!strcmp(type, units[i][0]))
			return units[i][1];
	return NULL;
}

static void *take(size_t count, size_t size)
{
	void *memory = calloc(count ? count : 1, size);

	if (!memory)
		errx(2, "no memory for the made-up fleet");
	return memory;
}

/* --- modules --- */

/* The SHA-1 note that linkers put near a file's start. */
static bool read_build_id(const char *path, char hex[41])
{
	static const uint8_t note[16] = {4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U'};
	static uint8_t bytes[16 << 10];
	FILE *file = fopen(path, "re");
	size_t length;

	if (!file)
		return false;
	length = fread(bytes, 1, sizeof bytes, file);
	fclose(file);
	for (size_t i = 0; i + 36 <= length; i += 4) {
		if (memcmp(bytes + i, note, sizeof note))
			continue;
		for (unsigned j = 0; j < 20; j++)
			sprintf(hex + 2 * j, "%02x", bytes[i + 16 + j]);
		return true;
	}
	return false;
}

static void read_modules(struct world *world, const char *directory)
{
	struct dirent **names;
	int count = scandir(directory, &names, NULL, alphasort);
	char path[4096];

	if (count < 0)
		err(2, "%s", directory);
	for (int i = 0; i < count; i++) {
		struct world_module *module = &world->modules[world->module_count];
		struct stat status;

		snprintf(path, sizeof path, "%s/%s", directory, names[i]->d_name);
		if (world->module_count < MODULES_MAX && strlen(names[i]->d_name) < 80 &&
		    !lstat(path, &status) && S_ISREG(status.st_mode) &&
		    read_build_id(path, module->build_id)) {
			strcpy(module->name, names[i]->d_name);
			world->module_count++;
		}
		free(names[i]);
	}
	free(names);
	if (world->module_count < MODULES_PER_APP)
		errx(2, "%s: fewer than %d files with build-ids", directory, MODULES_PER_APP);
}

static void make_modules(struct world *world)
{
	world->modules = take(MODULES_MAX + 1, sizeof *world->modules);
	strcpy(world->modules[0].name, "vmlinux");
	sprintf(world->modules[0].build_id, "%040x", 0xffffff);
	world->modules[0].is_kernel = true;
	world->module_count = 1;
	if (world->options.modules) {
		read_modules(world, world->options.modules);
		return;
	}
	for (; world->module_count <= MODULES_MADE_UP; world->module_count++) {
		struct world_module *module = &world->modules[world->module_count];

		sprintf(module->name, "libfleet%03u.so.1", world->module_count);
		sprintf(module->build_id, "f1ee7%035x", world->module_count);
	}
}

/* --- stacks --- */

/* Places near the start of a list are met more often: Zipf's law with exponent 1. */
static uint32_t draw(uint64_t *state, uint32_t limit)
{
	double unit = (double)(random_next(state) >> 11) * 0x1p-53;
	double at = exp(unit * log((double)limit + 1)) - 1;

	return at < limit ? (uint32_t)at : limit - 1;
}

static void make_locations(const struct world *world, uint32_t number, uint64_t *state)
{
	struct world_app *app = &world->apps[number];
	uint32_t own[MODULES_PER_APP];

	for (uint32_t i = 0; i < MODULES_PER_APP; i++) /* the first few are everybody's */
		own[i] = i < 4 ? 1 + i : 1 + random_below(state, world->module_count - 1);
	app->location_count = app->stack_count + 400;
	app->locations = take(app->location_count, sizeof *app->locations);
	for (uint32_t i = 0; i < app->location_count; i++) {
		struct world_location *location = &app->locations[i];
		uint32_t kind = random_below(state, 100);

		location->kind = WORLD_NATIVE;
		location->module = own[draw(state, MODULES_PER_APP)];
		location->address = 0x1000 + 16 * (uint64_t)i + random_below(state, 16);
		if (i < KERNEL_PATHS * KERNEL_DEPTH) {
			location->kind = WORLD_KERNEL;
			location->module = 0;
			location->address = 0x1000 + 64 * (uint64_t)i;
		} else if (number % 10 == 3 && kind < 30) {
			location->kind = WORLD_NAMED;
			location->function = i;
		} else if (kind == 99) {
			location->kind = WORLD_ANONYMOUS;
		}
	}
}

static void add_frame(struct world_app *app, uint32_t location)
{
	if (app->frame_count == app->frame_capacity) {
		app->frame_capacity = app->frame_capacity ? 2 * app->frame_capacity : 4096;
		app->frames = realloc(app->frames, app->frame_capacity * sizeof *app->frames);
		if (!app->frames)
			errx(2, "no memory for the made-up fleet");
	}
	app->frames[app->frame_count++] = location;
}

/* A stack shares its callers with an earlier one; one in five ends in the kernel. */
static void make_stack(struct world_app *app, uint32_t number, uint64_t *state)
{
	struct world_stack *stack = &app->stacks[number];
	uint32_t depth = DEPTH_MIN + random_below(state, DEPTH_MAX - DEPTH_MIN + 1), shared = 0;
	const uint32_t first_own = KERNEL_PATHS * KERNEL_DEPTH;

	stack->first = app->frame_count;
	stack->depth = depth;
	if (random_below(state, 5) == 0) {
		uint32_t path = draw(state, KERNEL_PATHS);

		for (uint32_t i = 0; i < KERNEL_DEPTH; i++)
			add_frame(app, path * KERNEL_DEPTH + i);
		depth -= KERNEL_DEPTH;
	}
	if (number) {
		const struct world_stack *other = &app->stacks[random_below(state, number)];

		shared = random_below(state, other->depth < depth ? other->depth : depth);
		if (shared > other->depth - KERNEL_DEPTH)
			shared = other->depth - KERNEL_DEPTH;
		for (uint32_t i = shared; i < depth; i++)
			add_frame(app, first_own + draw(state, app->location_count - first_own));
		for (uint32_t i = other->depth - shared; i < other->depth; i++)
			add_frame(app, app->frames[other->first + i]);
	} else {
		for (uint32_t i = 0; i < depth; i++)
			add_frame(app, first_own + i);
	}
	if (random_below(state, 50) == 0)
		stack->incomplete = 1 + random_below(state, 3);
}

/* --- reports --- */

static int compare_samples(const void *a, const void *b)
{
	const struct world_sample *x = a, *y = b;

	return x->stack != y->stack ? (x->stack > y->stack) - (x->stack < y->stack)
				    : (x->thread > y->thread) - (x->thread < y->thread);
}

/* Draws as many different stacks as asked, counted as often as they were met. */
static uint32_t draw_samples(const struct world *world, const struct world_app *app,
			     struct world_sample *samples, uint64_t *state)
{
	uint32_t wanted = world->options.samples, count = 0;
	uint32_t *place = take(app->stack_count, sizeof *place);

	for (uint32_t tries = 0; count < wanted && tries < 50 * wanted; tries++) {
		uint32_t stack = draw(state, app->stack_count);

		if (place[stack]) {
			samples[place[stack] - 1].count++;
			continue;
		}
		samples[count] = (struct world_sample){
			.stack = stack, .thread = random_below(state, WORLD_THREADS), .count = 1};
		place[stack] = ++count;
	}
	free(place);
	return count;
}

/* The type and process of a stack: always the same. */
static uint32_t profile_of(const struct world *world, uint32_t stack)
{
	uint32_t type = stack % 10 < world->options.type_count ? stack % 10 : 0;

	return type * world->options.processes + stack / 10 % world->options.processes;
}

static uint64_t value_of(const struct world *world, uint32_t type, uint64_t count, uint64_t *state)
{
	return strcmp(world->options.types[type], "on-cpu")
		       ? count * (1 + random_below(state, 1 << 20))
		       : count * 10101010;
}

static void make_template(struct world *world, uint32_t app_number, struct world_template *to,
			  uint64_t *state)
{
	const struct world_app *app = &world->apps[app_number];
	struct world_sample *drawn = take(world->options.samples, sizeof *drawn);
	uint32_t count = draw_samples(world, app, drawn, state);
	uint32_t groups = world->options.type_count * world->options.processes;

	to->app = app_number;
	to->samples = take(count + 1, sizeof *to->samples);
	to->profiles = take(groups, sizeof *to->profiles);
	qsort(drawn, count, sizeof *drawn, compare_samples);
	for (uint32_t group = 0; group < groups; group++) {
		struct world_profile *profile = &to->profiles[to->profile_count];

		*profile = (struct world_profile){group % world->options.processes,
						  group / world->options.processes,
						  to->sample_count, 0};
		for (uint32_t i = 0; i < count; i++) {
			if (profile_of(world, drawn[i].stack) != group)
				continue;
			drawn[i].value = value_of(world, profile->type, drawn[i].count, state);
			to->samples[to->sample_count++] = drawn[i];
			to->counted += drawn[i].count;
			if (!strcmp(world->options.types[profile->type], "on-cpu"))
				to->taken += drawn[i].count;
			profile->count++;
		}
		to->profile_count += profile->count > 0;
	}
	free(drawn);
}

static void make_app(struct world *world, uint32_t number)
{
	struct world_app *app = &world->apps[number];
	uint64_t state = world->options.seed * 1000003 + number;

	app->stack_count = world->options.stacks;
	make_locations(world, number, &state);
	app->stacks = take(app->stack_count, sizeof *app->stacks);
	for (uint32_t i = 0; i < app->stack_count; i++)
		make_stack(app, i, &state);
	app->templates = take(world->options.templates, sizeof *app->templates);
	for (uint32_t i = 0; i < world->options.templates; i++)
		make_template(world, number, &app->templates[i], &state);
}

void world_make(struct world *world, const struct world_options *options)
{
	*world = (struct world){.options = *options};
	make_modules(world);
	world->apps = take(options->apps, sizeof *world->apps);
	for (uint32_t i = 0; i < options->apps; i++)
		make_app(world, i);
}

/* --- labels --- */

const char *world_process(const struct world *world, uint32_t app, uint32_t process)
{
	static char text[16];

	(void)world;
	snprintf(text, sizeof text, "app%u-%u", app, process);
	return text;
}

const char *world_label(const struct world *world, uint32_t app, uint32_t process,
			const char *label)
{
	static char text[80];

	if (!strcmp(label, "process"))
		return world_process(world, app, process);
	*text = 0;
	if (!strcmp(label, "service"))
		snprintf(text, sizeof text, process ? "service%u" : "gateway%u", app);
	else if (!strcmp(label, "container") && app % 3)
		snprintf(text, sizeof text, "%064x", app * 16 + process);
	else if (!strcmp(label, "namespace") && app % 3)
		snprintf(text, sizeof text, "team%u", app % 5);
	else if (!strcmp(label, "pod") && app % 3 == 1)
		snprintf(text, sizeof text, "pod%u-%u", app, process);
	else if (!strcmp(label, "version"))
		snprintf(text, sizeof text, "v%u", app % 4);
	return *text ? text : NULL;
}

const char *world_thread(uint32_t thread)
{
	static const char *const names[WORLD_THREADS] = {"main",     "worker-0",    "worker-1",
							 "worker-2", "gc \xc3\xa9", "io;poll"};

	return names[thread];
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a made-up fleet runs: applications with modules, processes, threads and stacks that share
 * their callers, drawn by Zipf's law. The same seed makes the same world. */
#ifndef TESTS_TOOLS_FLEET_WORLD_H
#define TESTS_TOOLS_FLEET_WORLD_H

#include <stdbool.h>
#include <stdint.h>

enum { WORLD_TYPES_MAX = 12, WORLD_PROCESSES_MAX = 16, WORLD_THREADS = 6 };

struct world_options {
	uint64_t seed;
	uint32_t apps;
	uint32_t stacks;     /* of an application */
	uint32_t templates;  /* different reports of an application */
	uint32_t samples;    /* of a report, each of another stack */
	uint32_t processes;  /* of an application */
	uint32_t type_count; /* of profile types; each after the first has a tenth of the samples */
	const char *types[WORLD_TYPES_MAX];
	const char *modules; /* directory whose files' build-ids are taken; NULL: made up */
	bool is_plain;       /* samples have one value, their weight, as OTLP's text has it */
	uint32_t thread_ids; /* threads of a name; 0: samples do not say which */
	uint32_t lifetimes;  /* processes of a kind; 0: samples do not say which */
	uint32_t links;      /* requests of a report, to which its samples belong; 0: none */
};

struct world_module {
	char name[80];
	char build_id[41]; /* hexadecimal */
	bool is_kernel;
};

enum world_frame { WORLD_NATIVE, WORLD_KERNEL, WORLD_NAMED, WORLD_ANONYMOUS };

struct world_location {
	enum world_frame kind;
	uint32_t module;   /* NATIVE, KERNEL */
	uint64_t address;  /* all but NAMED */
	uint32_t function; /* NAMED: a number */
};

struct world_stack { /* leaf first */
	uint32_t first, depth;
	uint32_t incomplete; /* sentence + 1; 0: it reaches its start */
};

struct world_sample {
	uint32_t stack, thread;
	uint64_t count, value;
};

struct world_profile { /* of one process, of one type */
	uint32_t process, type;
	uint32_t first, count; /* samples */
};

/* One report as it could be: only times, ids, host and the fresh address are still to be said. */
struct world_template {
	uint32_t app;
	struct world_profile *profiles;
	uint32_t profile_count;
	struct world_sample *samples; /* the very first one's leaf has the fresh address */
	uint32_t sample_count;
	uint64_t counted; /* sum of their counts */
	uint64_t taken;   /* of those that an agent's farflame.taken has: on-cpu */
};

struct world_app {
	struct world_location *locations;
	uint32_t location_count;
	struct world_stack *stacks;
	uint32_t stack_count;
	uint32_t *frames; /* locations */
	uint32_t frame_count, frame_capacity;
	struct world_template *templates;
};

struct world {
	struct world_options options;
	struct world_module *modules;
	uint32_t module_count;
	struct world_app *apps;
};

/* Addresses of the fresh leaf: the first one is known after the first report. */
#define WORLD_FRESH_FIRST UINT64_C(0x20000000)
#define WORLD_FRESH_END   UINT64_C(0x780000000)
enum { WORLD_FRESH_MODULE = 1 };

extern const char *const world_sentences[3];
const char *world_unit(const char *type); /* NULL: no such type */

/* Ends the program with a sentence when the memory or the directory of modules is none. */
void world_make(struct world *world, const struct world_options *options);

/* Texts of a process's labels; valid until the next call. NULL: it has no such label. */
const char *world_process(const struct world *world, uint32_t app, uint32_t process);
const char *world_label(const struct world *world, uint32_t app, uint32_t process,
			const char *label);
const char *world_thread(uint32_t thread);

uint64_t random_next(uint64_t *state); /* splitmix64 */
uint32_t random_below(uint64_t *state, uint32_t limit);
bool random_percent(uint64_t *state, double percent);

#endif

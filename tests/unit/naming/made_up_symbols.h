/* SPDX-License-Identifier: Apache-2.0 */
/* A symbolizer that is a table, modules and locations as a store has them, and what else naming
 * asks of its neighbours. For one test program. */
#ifndef TESTS_UNIT_NAMING_MADE_UP_SYMBOLS_H
#define TESTS_UNIT_NAMING_MADE_UP_SYMBOLS_H

#include "symbol-server/api/flame_request.h"
#include "symbol-server/api/host_cpus.h"
#include "symbol-server/naming/named_stacks.h"

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

enum {
	MAIN,
	WORK,
	KERNEL,
	NOWHERE,
	ANON,
	INCOMPLETE,
	PYTHON,
	UNKNOWN,
	OTHER,
	LOOP,
	NAMELESS_LOOP,
	LOCATIONS
};

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
	[LOOP] = {LOCATION_RUNTIME, 0, 0x20, "", "", "", 0},
	[NAMELESS_LOOP] = {LOCATION_RUNTIME, 1, 0xdef, "", "", "", 0},
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/kernel_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "node-agent/processes/kernel_modules.h"
#include "node-agent/processes/kernel_symbols.h"

enum {
	RETRY_FIRST_S = 1,
	RETRY_LAST_S = 600,
	REFRESH_S = 60, /* a module can go and another come to its place */
};

/* One module with what of it was looked up when an address first fell into it. */
struct module {
	struct kernel_module kernel;
	struct kernel_module_text text;
	struct executable_ref executable;
	bool is_read, is_unreadable;
};

struct kernel_map {
	struct executables *executables;
	char *proc_root;
	uint64_t text, end; /* of the image; both 0: hidden */
	bool is_tried;
	struct build_id gnu;
	struct executable_ref executable;
	struct module *modules;
	size_t module_count;
	int64_t next_read_s, refresh_s;
	unsigned retry_s;
};

struct kernel_map *kernel_map_new(const char *proc_root, struct executables *executables,
				  struct error *err)
{
	struct kernel_map *map = calloc(1, sizeof(*map));

	if (!map || !(map->proc_root = strdup(proc_root))) {
		free(map);
		error_set(err, ERROR_MEMORY, "no memory for the kernel's map");
		return NULL;
	}
	map->executables = executables;
	map->retry_s = RETRY_FIRST_S;
	return map;
}

void kernel_map_free(struct kernel_map *map)
{
	if (!map)
		return;
	free(map->proc_root);
	free(map->modules);
	free(map);
}

static void read_image(struct kernel_map *map)
{
	struct error err = {0};

	map->is_tried = true;
	if (!kernel_text_range(map->proc_root, &map->text, &map->end, &err))
		log_warn("kernel unresolved", "reason=\"%s\"", err.message);
	else if (!kernel_build_id(map->proc_root, &map->gnu, &err))
		log_warn("kernel without build-id", "reason=\"%s\"", err.message);
}

/* --- modules --- */

static struct module *find_module(struct kernel_map *map, uint64_t address)
{
	size_t low = 0, high = map->module_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (map->modules[middle].kernel.end > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low < map->module_count && map->modules[low].kernel.base <= address
		       ? &map->modules[low]
		       : NULL;
}

/* What was looked up stays valid for a module that is still where it was. */
static void carry_over(const struct kernel_map *map, struct module *module)
{
	for (size_t i = 0; i < map->module_count; i++) {
		const struct module *before = &map->modules[i];

		if (before->kernel.base == module->kernel.base && before->is_read &&
		    before->kernel.end == module->kernel.end &&
		    !strcmp(before->kernel.name, module->kernel.name))
			*module = *before;
	}
}

static void read_modules(struct kernel_map *map)
{
	struct kernel_module *read = NULL;
	struct module *modules = NULL;
	size_t count = 0;

	if (!kernel_modules_read(map->proc_root, &read, &count, NULL))
		return;
	modules = count ? calloc(count, sizeof(*modules)) : NULL;
	if (modules || !count) {
		for (size_t i = 0; i < count; i++) {
			modules[i].kernel = read[i];
			carry_over(map, &modules[i]);
		}
		free(map->modules);
		map->modules = modules;
		map->module_count = count;
	}
	free(read);
}

/* A miss is most often a BPF program or a trampoline: asking for modules each time would cost. */
static struct module *find_module_fresh(struct kernel_map *map, uint64_t address)
{
	struct module *module = find_module(map, address);
	int64_t now = monotonic_ms() / 1000;

	if (module ? now < map->refresh_s : now < map->next_read_s)
		return module;
	read_modules(map);
	module = find_module(map, address);
	map->refresh_s = now + REFRESH_S;
	map->next_read_s = now + map->retry_s;
	map->retry_s = module                        ? RETRY_FIRST_S
		       : map->retry_s < RETRY_LAST_S ? 2 * map->retry_s
						     : RETRY_LAST_S;
	return module;
}

static struct module *module_of(struct kernel_map *map, uint64_t address)
{
	struct module *module = find_module_fresh(map, address);

	if (module && !module->is_read) {
		module->is_read = true;
		module->is_unreadable = !kernel_module_text(map->proc_root, module->kernel.name,
							    &module->text, NULL);
	}
	return module;
}

/* --- addresses --- */

static void fill(struct kernel_map *map, struct executable_ref *ref, const char *name,
		 const struct build_id *gnu, enum address_base base, uint64_t limit,
		 uint64_t address, struct located_frame *frame)
{
	const struct executable *executable = executables_get(map->executables, *ref);

	if (!executable && executables_add_kernel(map->executables, name, gnu, base, limit, ref))
		executable = executables_get(map->executables, *ref);
	if (!executable)
		return;
	frame->place = PLACE_FILE;
	frame->executable = executable;
	frame->address = address;
}

static void locate_module(struct kernel_map *map, uint64_t address, struct located_frame *frame)
{
	struct module *module = module_of(map, address);
	char name[KERNEL_MODULE_NAME + 4];

	if (module && module->is_unreadable)
		return;
	if (!module || address < module->text.start || address >= module->text.end) {
		frame->place = PLACE_ANONYMOUS;
		return;
	}
	snprintf(name, sizeof(name), "%s.ko", module->kernel.name);
	fill(map, &module->executable, name, &module->text.gnu, ADDRESS_MODULE_TEXT,
	     module->text.end - module->text.start, address - module->text.start, frame);
}

void kernel_map_locate(struct kernel_map *map, uint64_t address, struct located_frame *frame)
{
	*frame = (struct located_frame){.place = PLACE_UNKNOWN};
	if (!map->is_tried)
		read_image(map);
	if (!map->end)
		return;
	if (address >= map->text && address < map->end)
		fill(map, &map->executable, "vmlinux", &map->gnu, ADDRESS_KERNEL_TEXT,
		     map->end - map->text, address - map->text, frame);
	else
		locate_module(map, address, frame);
}

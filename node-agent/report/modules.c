/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/report/modules.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node-agent/ship/ship.h"

enum {
	FRESH_MAX = 512, /* per interval; more wait for the next one */
};

/* A kernel module's name for as long as ship may ask for its symbols: until the process ends. */
struct module_name {
	struct module_name *next;
	char text[64];
};

struct fresh_executable {
	uint32_t index;
	uint64_t samples;
};

struct module_announcer {
	struct process_table *table;
	bool with_content;
	struct fresh_executable fresh[FRESH_MAX];
	size_t fresh_count;
	struct module_name *names;
};

struct module_announcer *module_announcer_new(struct process_table *table, bool with_content,
					      struct error *err)
{
	struct module_announcer *announcer = calloc(1, sizeof *announcer);

	if (!announcer) {
		error_set(err, ERROR_MEMORY, "no memory for modules");
		return NULL;
	}
	announcer->table = table;
	announcer->with_content = with_content;
	return announcer;
}

void module_announcer_free(struct module_announcer *announcer)
{
	if (!announcer)
		return;
	while (announcer->names) {
		struct module_name *name = announcer->names;

		announcer->names = name->next;
		free(name);
	}
	free(announcer);
}

/* --- which ones --- */

void module_announcer_saw(struct module_announcer *announcer, const struct executable *executable)
{
	if (executable->is_announced)
		return;
	for (size_t i = 0; i < announcer->fresh_count; i++)
		if (announcer->fresh[i].index == executable->index) {
			announcer->fresh[i].samples++;
			return;
		}
	if (announcer->fresh_count < FRESH_MAX)
		announcer->fresh[announcer->fresh_count++] =
			(struct fresh_executable){.index = executable->index, .samples = 1};
}

/* --- symbols of the kernel, made on ship's thread when the server wants them --- */

static bool make_kernel_text(void *context, struct buffer *out, struct error *err)
{
	(void)context;
	return kernel_symbols_text("/proc", out, err);
}

static bool make_module_text(void *context, struct buffer *out, struct error *err)
{
	const struct module_name *name = context;

	return kernel_module_symbols_text("/proc", name->text, out, err);
}

/* "ext4.ko" → ext4, as kallsyms has it. */
static struct module_name *keep_name(struct module_announcer *announcer, const char *text)
{
	struct module_name *name = calloc(1, sizeof *name);
	size_t length;

	if (!name)
		return NULL;
	snprintf(name->text, sizeof name->text, "%s", text);
	length = strlen(name->text);
	if (length > 3 && !strcmp(name->text + length - 3, ".ko"))
		name->text[length - 3] = '\0';
	name->next = announcer->names;
	announcer->names = name;
	return name;
}

static void set_file(const struct executable *executable, struct ship_module *module)
{
	module->fd = fcntl(executable->fd, F_DUPFD_CLOEXEC, 3);
	if (module->fd < 0)
		return;
	module->place.st = executable->st;
	module->place.tgid = executable->tgid;
	module->place.start = executable->mapping_start;
	module->place.end = executable->mapping_end;
	if (executable->path[0] == '/')
		module->place.path = strdup(executable->path);
}

static void set_content(struct module_announcer *announcer, const struct executable *executable,
			struct ship_module *module)
{
	if (!announcer->with_content)
		return;
	switch (executable->base) {
	case ADDRESS_ELF:
		if (!executable->is_private &&
		    process_table_reopen(announcer->table, executable->index))
			set_file(executable, module);
		break;
	case ADDRESS_KERNEL_TEXT:
		module->make_bytes = make_kernel_text;
		break;
	case ADDRESS_MODULE_TEXT:
		module->make_context = keep_name(announcer, executable->name);
		if (module->make_context)
			module->make_bytes = make_module_text;
		break;
	}
}

static void announce(struct module_announcer *announcer, const struct executable *executable,
		     uint64_t samples, struct ship *ship)
{
	struct ship_module module = {.fd = -1, .samples = samples};

	module.is_htlhash = !executable->gnu.length;
	module.id = module.is_htlhash ? executable->htlhash : executable->gnu;
	if (!module.id.length)
		return;
	snprintf(module.name, sizeof module.name, "%s", executable->name);
	set_content(announcer, executable, &module);
	ship_module(ship, &module);
}

/* Somebody may still run it who is known to be allowed to read it. */
static bool is_withheld(const struct module_announcer *announcer,
			const struct executable *executable)
{
	return announcer->with_content && executable->is_private;
}

void module_announcer_run(struct module_announcer *announcer, struct ship *ship)
{
	for (size_t i = 0; i < announcer->fresh_count; i++) {
		const struct fresh_executable *fresh = &announcer->fresh[i];
		const struct executable *executable = process_table_executable(announcer->table,
									       fresh->index);

		if (!executable)
			continue;
		announce(announcer, executable, fresh->samples, ship);
		if (!is_withheld(announcer, executable))
			process_table_announced(announcer->table, fresh->index);
	}
	announcer->fresh_count = 0;
}

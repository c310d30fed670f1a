/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/kernel_symbols.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "node-agent/processes/kernel_modules.h"
#include "node-agent/processes/process_table.h"

bool kernel_symbol_parse(char *line, struct kernel_symbol *symbol)
{
	char *end, *name, *tab;

	symbol->address = strtoull(line, &end, 16);
	if (end == line || line[0] == '-' || end[0] != ' ' || !end[1] || end[2] != ' ' || !end[3])
		return false;
	symbol->type = end[1];
	name = end + 3;
	name[strcspn(name, "\n")] = '\0';
	symbol->name = name;
	symbol->module = "";
	tab = strchr(name, '\t');
	if (tab) {
		size_t length = strlen(tab + 1);

		if (length < 3 || tab[1] != '[' || tab[length] != ']')
			return false;
		*tab = tab[length] = '\0';
		symbol->module = tab + 2;
	}
	return *name != '\0';
}

bool kernel_symbols_each(const char *proc_root,
			 bool (*each)(void *context, const struct kernel_symbol *symbol),
			 void *context, struct error *err)
{
	char path[PATH_MAX], line[1024];
	struct kernel_symbol symbol;
	FILE *file;

	if (snprintf(path, sizeof(path), "%s/kallsyms", proc_root) >= (int)sizeof(path))
		return error_set(err, ERROR_OPTION, "the path of kallsyms is too long");
	file = fopen(path, "re");
	if (!file)
		return error_set_system(err, errno, "open %s", path);
	while (fgets(line, sizeof(line), file))
		if (kernel_symbol_parse(line, &symbol) && !each(context, &symbol))
			break;
	fclose(file);
	return true;
}

struct text_range {
	uint64_t text, end;
	bool has_text, has_end;
};

static bool find_range(void *context, const struct kernel_symbol *symbol)
{
	struct text_range *range = context;

	if (*symbol->module)
		return false; /* modules come last */
	if (!strcmp(symbol->name, "_text")) {
		range->text = symbol->address;
		range->has_text = true;
	} else if (!strcmp(symbol->name, "_etext")) {
		range->end = symbol->address;
		range->has_end = true;
	}
	return !range->has_text || !range->has_end;
}

bool kernel_text_range(const char *proc_root, uint64_t *text, uint64_t *end, struct error *err)
{
	struct text_range range = {0};

	if (!kernel_symbols_each(proc_root, find_range, &range, err))
		return false;
	if (!range.has_text || !range.has_end)
		return error_set(err, ERROR_UNSUPPORTED,
				 "%s/kallsyms has no _text and _etext: kernel frames stay without "
				 "names",
				 proc_root);
	if (!range.text || range.text >= range.end)
		return error_set(err, ERROR_UNSUPPORTED,
				 "kernel addresses are hidden (kernel.kptr_restrict, CAP_SYSLOG): "
				 "kernel frames stay without names");
	*text = range.text;
	*end = range.end;
	return true;
}

/* Addresses ascend: a function ends where the next begins. */
static bool find_scheduler(void *context, const struct kernel_symbol *symbol)
{
	struct kernel_scheduler *found = context;

	if (found->waking_start && !found->waking_end && symbol->address > found->waking_start)
		found->waking_end = symbol->address;
	if (!strcmp(symbol->name, "__sched_text_start"))
		found->start = symbol->address;
	else if (!strcmp(symbol->name, "__sched_text_end"))
		found->end = symbol->address;
	else if (!strcmp(symbol->name, "try_to_wake_up"))
		found->waking_start = symbol->address;
	return !*symbol->module && (!found->start || !found->end || !found->waking_end);
}

void kernel_scheduler_find(const char *proc_root, struct kernel_scheduler *out)
{
	*out = (struct kernel_scheduler){0};
	if (!kernel_symbols_each(proc_root, find_scheduler, out, NULL) || out->start >= out->end)
		out->start = out->end = 0;
	if (out->waking_start >= out->waking_end)
		out->waking_start = out->waking_end = 0;
}

size_t kernel_scheduler_waking(const struct kernel_scheduler *scheduler, const uint64_t *frames,
			       size_t count)
{
	for (size_t at = 0; at < count; at++)
		if (frames[at] >= scheduler->waking_start && frames[at] < scheduler->waking_end)
			return at;
	return 0;
}

static bool is_in(const struct kernel_scheduler *scheduler, uint64_t address)
{
	return address >= scheduler->start && address < scheduler->end;
}

size_t kernel_scheduler_switching(const struct kernel_scheduler *scheduler, const uint64_t *frames,
				  size_t count)
{
	size_t at = 0;

	while (at < count && !is_in(scheduler, frames[at]))
		at++;
	if (at == count) /* it was taken somewhere else, or nobody knows where that is */
		return 0;
	while (at < count && is_in(scheduler, frames[at]))
		at++;
	return at;
}

/* --- texts for the server --- */

struct text_maker {
	struct buffer *out;
	const char *module; /* "" for the kernel image */
	uint64_t start, end;
};

/* Functions: t, T; weak ones: w, W. Not data, nor what is absolute or counted per CPU. */
static bool append_symbol(void *context, const struct kernel_symbol *symbol)
{
	const struct text_maker *maker = context;

	/* The end marker is wanted too: it bounds the last function. */
	if (!strchr("tTwW", symbol->type) || strcmp(symbol->module, maker->module) != 0 ||
	    symbol->address < maker->start || symbol->address > maker->end)
		return true;
	buffer_printf(maker->out, "%" PRIx64 " %c %s\n", symbol->address - maker->start,
		      symbol->type, symbol->name);
	return !maker->out->failed;
}

static bool append_symbols(const char *proc_root, struct text_maker *maker, struct error *err)
{
	if (!kernel_symbols_each(proc_root, append_symbol, maker, err))
		return false;
	if (maker->out->failed)
		return error_set(err, ERROR_LIMIT, "kernel symbols are more than %zu bytes",
				 maker->out->limit);
	return true;
}

bool kernel_symbols_text(const char *proc_root, struct buffer *out, struct error *err)
{
	struct text_maker maker = {.out = out, .module = ""};

	if (!kernel_text_range(proc_root, &maker.start, &maker.end, err))
		return false;
	buffer_append_text(out, "farflame-kallsyms 1\n");
	return append_symbols(proc_root, &maker, err);
}

bool kernel_module_symbols_text(const char *proc_root, const char *module, struct buffer *out,
				struct error *err)
{
	struct text_maker maker = {.out = out, .module = module};
	struct kernel_module_text text;

	if (!kernel_module_text(proc_root, module, &text, err))
		return false;
	maker.start = text.start;
	maker.end = text.end;
	buffer_printf(out, "farflame-kallsyms 1\nmodule %s\n", module);
	return append_symbols(proc_root, &maker, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel modules as /proc/modules and /sys/module show them. */
#ifndef NODE_AGENT_PROCESSES_KERNEL_MODULES_H
#define NODE_AGENT_PROCESSES_KERNEL_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"

enum { KERNEL_MODULE_NAME = 64, KERNEL_MODULES_MAX = 4096 };

struct kernel_module {
	char name[KERNEL_MODULE_NAME];
	uint64_t base, end; /* its memory; from 6.4 on end is too far: data lies elsewhere */
};

/* One line of /proc/modules; size in bytes, address last. False: not such a line, or hidden (0). */
bool kernel_module_parse(const char *line, struct kernel_module *module);

/* All modules by base address; each one's end is not behind the next one's base. *modules is the
 * caller's to free(); a kernel without modules gives none. */
bool kernel_modules_read(const char *proc_root, struct kernel_module **modules, size_t *count,
			 struct error *err);

struct kernel_module_text {
	uint64_t start, end; /* .text now; end: the next section's start, else the module's end */
	struct build_id gnu; /* length 0: none */
};

/* From /sys/module/NAME/sections and notes; /sys is looked for beside proc_root. */
bool kernel_module_text(const char *proc_root, const char *name, struct kernel_module_text *text,
			struct error *err);

/* The running kernel's own build-id, /sys/kernel/notes. */
bool kernel_build_id(const char *proc_root, struct build_id *gnu, struct error *err);

#endif

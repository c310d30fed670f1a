/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's lists of CPUs: "0-3,8" as in /sys/devices/system/cpu/online. */
#ifndef NODE_AGENT_KERNEL_CPU_LIST_H
#define NODE_AGENT_KERNEL_CPU_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

enum { CPU_LIMIT = 8192 }; /* NR_CPUS of the largest distribution kernels */

/* Sets is_listed[n] for every listed CPU below room and clears the others. Returns the highest
 * listed number + 1, also beyond room; 0: the text is no such list. */
unsigned cpu_list_parse(const char *text, bool *is_listed, size_t room);

/* The same for a file. */
unsigned cpu_list_read(const char *path, bool *is_listed, size_t room, struct error *err);

/* How many values a per-CPU map holds. At least 1. */
unsigned cpu_list_count(const bool *is_listed, size_t room);

#endif

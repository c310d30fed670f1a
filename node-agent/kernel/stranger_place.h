/* SPDX-License-Identifier: Apache-2.0 */
/* Where a stranger's file was seen, to open it again on need: a descriptor that is kept would keep
 * its file system from being unmounted. */
#ifndef NODE_AGENT_KERNEL_STRANGER_PLACE_H
#define NODE_AGENT_KERNEL_STRANGER_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct stranger_place {
	uint32_t tgid;       /* who had it mapped; 0: nobody that is known */
	uint64_t start, end; /* there */
	char *path;          /* in whose root ever; who has the struct says who owns it */
	struct stat st;      /* stranger_file_stat() of it */
};

/* Whether two stat(2)s are of one unchanged file. The change time catches what sets the others
 * back; may_be_renamed: it does not count, since unlinking and renaming change it, too. */
bool stranger_place_same(const struct stat *a, const struct stat *b, bool may_be_renamed);

/* The very same file, for reading: by that process' mapping, else by the path below our own root.
 * −1: neither has it any more. May wait for a file system's server. */
int stranger_place_open(const struct stranger_place *place);

#endif

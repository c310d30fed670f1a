/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/descriptors.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool descriptors_add(struct descriptors *descriptors, int fd, struct error *err)
{
	if (descriptors->count == descriptors->room) {
		size_t room = descriptors->room ? descriptors->room * 2 : 64;
		int *grown = realloc(descriptors->fds, room * sizeof *grown);

		if (!grown)
			return error_set(err, ERROR_MEMORY, "%zu descriptors", room);
		descriptors->fds = grown;
		descriptors->room = room;
	}
	descriptors->fds[descriptors->count++] = fd;
	return true;
}

void descriptors_release(struct descriptors *descriptors)
{
	for (size_t i = 0; i < descriptors->count; i++)
		close(descriptors->fds[i]);
	free(descriptors->fds);
	memset(descriptors, 0, sizeof *descriptors);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/sources/disk_room.h"

#include <sys/statvfs.h>

uint64_t disk_room_lacks(int fd, uint64_t bytes, uint64_t *free_bytes)
{
	struct statvfs disk;
	uint64_t wanted = bytes + DISK_ROOM_LEFT;

	*free_bytes = UINT64_MAX;
	if (fstatvfs(fd, &disk) || !disk.f_blocks) /* a tmpfs without a limit */
		return 0;
	*free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
	return *free_bytes < wanted ? wanted - *free_bytes : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What files for names leave of the disk of --data: samples come first. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SOURCES_DISK_ROOM_H
#define SYMBOL_SERVER_SYMBOLIZE_SOURCES_DISK_ROOM_H

#include <stdint.h>

#define DISK_ROOM_LEFT ((uint64_t)256 << 20) /* is always left free */
#define MB(bytes_)     ((uint64_t)((bytes_) + (1 << 20) - 1) >> 20)

/* Bytes that the file system of fd lacks for bytes more beside DISK_ROOM_LEFT; 0: they fit, or it
 * has no limit. *free_bytes: what it has. */
uint64_t disk_room_lacks(int fd, uint64_t bytes, uint64_t *free_bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/kernel/bpf_map.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool map_call(int command, int map_fd, const void *key, const void *value, struct error *err)
{
	union bpf_attr attributes;

	memset(&attributes, 0, sizeof attributes);
	attributes.map_fd = (uint32_t)map_fd;
	attributes.key = (uintptr_t)key;
	attributes.value = (uintptr_t)value;
	if (syscall(SYS_bpf, command, &attributes, sizeof attributes) != 0)
		return error_set_system(err, errno, "BPF map");
	return true;
}

bool bpf_map_read(int map_fd, const void *key, void *value, struct error *err)
{
	return map_call(BPF_MAP_LOOKUP_ELEM, map_fd, key, value, err);
}

bool bpf_map_write(int map_fd, const void *key, const void *value, struct error *err)
{
	return map_call(BPF_MAP_UPDATE_ELEM, map_fd, key, value, err);
}

bool bpf_programs_wait(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0;
}

bool bpf_map_remove(int map_fd, const void *key, struct error *err)
{
	struct error why = {0};

	if (map_call(BPF_MAP_DELETE_ELEM, map_fd, key, NULL, &why) || why.os_error == ENOENT)
		return true;
	if (err)
		*err = why;
	return false;
}

static int map_new(uint32_t type, uint32_t key_bytes, uint32_t value_bytes, uint32_t entries,
		   struct error *err)
{
	const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	union bpf_attr attributes;
	long fd;

	memset(&attributes, 0, sizeof attributes);
	attributes.map_type = type;
	attributes.key_size = key_bytes;
	attributes.value_size = value_bytes;
	attributes.max_entries = entries;
	fd = syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes);
	/* Before 5.11 maps count against this limit, and EPERM is how that is said. */
	if (fd < 0 && errno == EPERM && setrlimit(RLIMIT_MEMLOCK, &unlimited) == 0)
		fd = syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes);
	if (fd < 0)
		error_set_system(err, errno, "create a BPF map");
	return (int)fd;
}

int bpf_map_new_array(uint32_t value_bytes, uint32_t entries, struct error *err)
{
	return map_new(BPF_MAP_TYPE_ARRAY, sizeof(uint32_t), value_bytes, entries, err);
}

int bpf_map_new_hash(uint32_t key_bytes, uint32_t value_bytes, uint32_t entries, struct error *err)
{
	return map_new(BPF_MAP_TYPE_HASH, key_bytes, value_bytes, entries, err);
}

uint64_t bpf_map_bytes(int map_fd)
{
	char path[64], line[128];
	unsigned long long bytes = 0;
	FILE *file;

	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", map_fd);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof line, file))
		if (sscanf(line, "memlock: %llu", &bytes) == 1)
			break;
	fclose(file);
	return bytes;
}

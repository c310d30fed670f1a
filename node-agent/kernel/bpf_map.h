/* SPDX-License-Identifier: Apache-2.0 */
/* The few bpf(2) calls a running agent makes on maps that are already there. */
#ifndef NODE_AGENT_KERNEL_BPF_MAP_H
#define NODE_AGENT_KERNEL_BPF_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* value: the map's value size; for per-CPU maps 8-byte units times possible CPUs. */
bool bpf_map_read(int map_fd, const void *key, void *value, struct error *err);
bool bpf_map_write(int map_fd, const void *key, const void *value, struct error *err);

/* False, ERROR_SYSTEM with os_error ENOENT: it has no such key. */
bool bpf_map_delete(int map_fd, const void *key, struct error *err);

/* Kernel memory the map holds ("memlock" of /proc/self/fdinfo); 0 when unknown. */
uint64_t bpf_map_bytes(int map_fd);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The few bpf(2) calls a running agent makes on maps. */
#ifndef NODE_AGENT_KERNEL_BPF_MAP_H
#define NODE_AGENT_KERNEL_BPF_MAP_H

#include <stdint.h>

#include "common/error.h"

/* value: the map's value size; for per-CPU maps 8-byte units times possible CPUs. */
bool bpf_map_read(int map_fd, const void *key, void *value, struct error *err);
bool bpf_map_write(int map_fd, const void *key, const void *value, struct error *err);
/* A key that is not there is no error. */
bool bpf_map_remove(int map_fd, const void *key, struct error *err);

/* A new array map, as the inner maps of an array of maps are: its descriptor, or −1. */
int bpf_map_new_array(uint32_t value_bytes, uint32_t entries, struct error *err);

/* The same of a hash. */
int bpf_map_new_hash(uint32_t key_bytes, uint32_t value_bytes, uint32_t entries, struct error *err);

/* Returns when every BPF program that runs now has ended: what it may have found in a map is then
 * nobody's any more. False: not on this host, it has nohz_full CPUs. */
bool bpf_programs_wait(void);

/* Kernel memory the map holds ("memlock" of /proc/self/fdinfo); 0 when unknown. */
uint64_t bpf_map_bytes(int map_fd);

#endif

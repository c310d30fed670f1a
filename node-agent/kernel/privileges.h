/* SPDX-License-Identifier: Apache-2.0 */
/* What this process may ask of the kernel, and the sentence when that is not enough. */
#ifndef NODE_AGENT_KERNEL_PRIVILEGES_H
#define NODE_AGENT_KERNEL_PRIVILEGES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

enum kernel_lockdown {
	LOCKDOWN_UNKNOWN,
	LOCKDOWN_NONE,
	LOCKDOWN_INTEGRITY,
	LOCKDOWN_CONFIDENTIALITY
};

/* From /sys/kernel/security/lockdown; UNKNOWN when it is not there or not readable. */
enum kernel_lockdown kernel_lockdown(void);
/* "kernel/perf_event_paranoid"; KERNEL_SYSCTL_UNREADABLE when it cannot be read. */
enum { KERNEL_SYSCTL_UNREADABLE = -100 };
int64_t kernel_sysctl(const char *path);
/* The effective set, bits CAP_* of <linux/capability.h>. */
uint64_t kernel_capabilities(void);

/* One sentence about why a call of bpf(2) or perf_event_open(2) was not permitted: missing
 * capabilities, lockdown, a sysctl, the memory limit, or else a filter of system calls.
 * what: "load BPF programs". ERROR_UNSUPPORTED; returns false. */
bool kernel_permission_error(struct error *err, int os_error, const char *what);

#endif

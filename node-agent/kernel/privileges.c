/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/kernel/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool read_small_file(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, room - 1);

	if (fd >= 0)
		close(fd);
	text[length > 0 ? length : 0] = '\0';
	return length > 0;
}

enum kernel_lockdown kernel_lockdown(void)
{
	char text[128];

	if (!read_small_file("/sys/kernel/security/lockdown", text, sizeof text))
		return LOCKDOWN_UNKNOWN;
	if (strstr(text, "[confidentiality]"))
		return LOCKDOWN_CONFIDENTIALITY;
	if (strstr(text, "[integrity]"))
		return LOCKDOWN_INTEGRITY;
	return strstr(text, "[none]") ? LOCKDOWN_NONE : LOCKDOWN_UNKNOWN;
}

int64_t kernel_sysctl(const char *name)
{
	char path[128], text[64], *end;
	long long value;

	snprintf(path, sizeof path, "/proc/sys/%s", name);
	if (!read_small_file(path, text, sizeof text))
		return KERNEL_SYSCTL_UNREADABLE;
	value = strtoll(text, &end, 10);
	return end == text ? KERNEL_SYSCTL_UNREADABLE : value;
}

uint64_t kernel_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	if (syscall(SYS_capget, &header, data) != 0)
		return 0;
	return data[0].effective | (uint64_t)data[1].effective << 32;
}

static bool has(uint64_t capabilities, unsigned bit)
{
	return capabilities >> bit & 1;
}

bool kernel_permission_error(struct error *err, int os_error, const char *what)
{
	uint64_t capabilities = kernel_capabilities();
	struct rlimit memlock = {0};

	getrlimit(RLIMIT_MEMLOCK, &memlock);
	if (!has(capabilities, CAP_SYS_ADMIN) &&
	    !(has(capabilities, CAP_BPF) && has(capabilities, CAP_PERFMON)))
		error_set(err, ERROR_UNSUPPORTED,
			  "%s: not permitted; run as root, or give the agent the capabilities "
			  "CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, "
			  "CAP_CHECKPOINT_RESTORE and CAP_SYSLOG",
			  what);
	else if (kernel_lockdown() == LOCKDOWN_CONFIDENTIALITY)
		error_set(err, ERROR_UNSUPPORTED,
			  "%s: not permitted; this kernel is locked down for confidentiality "
			  "(/sys/kernel/security/lockdown), which forbids BPF to read memory",
			  what);
	else if (memlock.rlim_cur != RLIM_INFINITY && memlock.rlim_cur < 64u << 20 &&
		 access("/sys/kernel/bpf", F_OK) != 0 && os_error == EPERM)
		error_set(
			err, ERROR_UNSUPPORTED,
			"%s: not permitted; kernels before 5.11 count BPF maps against the "
			"locked-memory limit, which is %llu KiB: raise it (LimitMEMLOCK=infinity)",
			what, (unsigned long long)memlock.rlim_cur >> 10);
	else
		error_set(err, ERROR_UNSUPPORTED,
			  "%s: not permitted although the capabilities are there; a container's "
			  "system-call filter or a security module forbids it (%s)",
			  what, strerror(os_error));
	if (err)
		err->os_error = os_error;
	return false;
}

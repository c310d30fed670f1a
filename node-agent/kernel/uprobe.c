/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/kernel/uprobe.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "node-agent/kernel/privileges.h"

enum {
	SEMAPHORE_SHIFT = 32, /* format/ref_ctr_offset of the event source */
	CPU_ATTEMPTS = 8,
};

/* The event source's number, which differs between kernels. 0: there is none. */
static uint32_t source_type(void)
{
	FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	unsigned type = 0;

	if (file && fscanf(file, "%u", &type) != 1)
		type = 0;
	if (file)
		fclose(file);
	return type;
}

static int open_failed(struct error *err, int os_error)
{
	if (os_error == EPERM || os_error == EACCES)
		kernel_permission_error(err, os_error, "probe programs");
	else
		error_set_system(err, os_error, "probe programs");
	return -1;
}

/* One CPU stands for all: the program runs wherever the instruction does. The same holds of one
 * thread and those that it shares its memory with. */
static int open_event(struct perf_event_attr *attributes, pid_t tgid)
{
	int fd = -1;

	if (tgid > 0)
		return (int)syscall(SYS_perf_event_open, attributes, tgid, -1, -1,
				    PERF_FLAG_FD_CLOEXEC);
	/* The one that this thread is on, unless it goes just then. */
	for (int attempt = 0; fd < 0 && attempt < CPU_ATTEMPTS; attempt++) {
		fd = (int)syscall(SYS_perf_event_open, attributes, -1, sched_getcpu(), -1,
				  PERF_FLAG_FD_CLOEXEC);
		if (fd < 0 && errno != ENODEV)
			break;
	}
	return fd;
}

static int open_probe(int file, uint64_t offset, uint32_t semaphore, pid_t tgid, int program,
		      struct error *err)
{
	struct perf_event_attr attributes = {.size = sizeof attributes, .type = source_type()};
	char path[40];
	int fd;

	if (!attributes.type) {
		error_set(err, ERROR_UNSUPPORTED,
			  "probe programs: this kernel has no uprobes (CONFIG_UPROBE_EVENTS)");
		return -1;
	}
	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	attributes.config = (uint64_t)semaphore << SEMAPHORE_SHIFT;
	attributes.config1 = (uintptr_t)path;
	attributes.config2 = offset;
	fd = open_event(&attributes, tgid);
	if (fd < 0)
		return open_failed(err, errno);
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) == 0 &&
	    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0)
		return fd;
	open_failed(err, errno);
	close(fd);
	return -1;
}

int uprobe_open(int file, uint64_t offset, uint32_t semaphore, int program, struct error *err)
{
	return open_probe(file, offset, semaphore, -1, program, err);
}

int uprobe_open_process(int file, uint64_t offset, uint32_t tgid, int program, struct error *err)
{
	return open_probe(file, offset, 0, (pid_t)tgid, program, err);
}

static void *close_it(void *context)
{
	close((int)(intptr_t)context);
	return NULL;
}

void uprobe_close(int fd)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	int failure;

	if (fd < 0)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for those who wait for them */
	failure = pthread_attr_init(&attributes);
	if (!failure) {
		pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
		failure = pthread_create(&thread, &attributes, close_it, (void *)(intptr_t)fd);
		pthread_attr_destroy(&attributes);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failure)
		close(fd);
}

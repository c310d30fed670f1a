/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/kernel/perf_event.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "node-agent/kernel/privileges.h"

static int perf_open(struct perf_event_attr *attributes, int thread, unsigned cpu)
{
	attributes->size = sizeof *attributes;
	attributes->inherit = thread != PERF_EVERY_THREAD;
	return (int)syscall(SYS_perf_event_open, attributes, thread, (int)cpu, -1,
			    PERF_FLAG_FD_CLOEXEC);
}

static bool open_failed(struct error *err, int os_error, int thread, unsigned cpu)
{
	if (os_error == ESRCH)
		return error_set(err, ERROR_NOT_FOUND, "thread %d is gone", thread);
	if (os_error == ENODEV)
		return error_set(err, ERROR_NOT_FOUND, "CPU %u is offline", cpu);
	if (os_error == ENOSYS)
		return error_set(err, ERROR_UNSUPPORTED, "this kernel has no perf events");
	if (os_error != EPERM && os_error != EACCES)
		return error_set_system(err, os_error, "open perf event on CPU %u", cpu);
	if (thread == PERF_EVERY_THREAD)
		return kernel_permission_error(err, os_error, "open perf events of all processes");
	error_set(err, ERROR_UNSUPPORTED,
		  "sample thread %d by perf events: not permitted; it is another user's, or "
		  "kernel.perf_event_paranoid (%" PRId64
		  ", at most 2 will do) or a container's system-call filter forbids it",
		  thread, kernel_sysctl("kernel/perf_event_paranoid"));
	if (err)
		err->os_error = os_error;
	return false;
}

int perf_timer_open(unsigned cpu, uint64_t period_ns, int program_fd, struct error *err)
{
	/* A fixed period, so that the count divided by it is the number of ticks; idle ticks count
	 * too (exclude_idle loses nearly all ticks of a mostly idle CPU, seen on 6.18). */
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
		.disabled = 1,
	};
	int fd = perf_open(&attributes, PERF_EVERY_THREAD, cpu);

	if (fd < 0) {
		open_failed(err, errno, PERF_EVERY_THREAD, cpu);
		return -1;
	}
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, program_fd) != 0) {
		error_set_system(err, errno, "attach to the timer of CPU %u", cpu);
		close(fd);
		return -1;
	}
	return fd;
}

int perf_faults_open(unsigned cpu, bool is_major, uint64_t period, int program_fd,
		     struct error *err)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.config = is_major ? PERF_COUNT_SW_PAGE_FAULTS_MAJ : PERF_COUNT_SW_PAGE_FAULTS_MIN,
		.sample_period = period,
	};
	int fd = perf_open(&attributes, PERF_EVERY_THREAD, cpu);

	if (fd < 0) {
		open_failed(err, errno, PERF_EVERY_THREAD, cpu);
		return -1;
	}
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, program_fd) != 0) {
		error_set_system(err, errno, "attach to the page faults of CPU %u", cpu);
		close(fd);
		return -1;
	}
	return fd;
}

uint64_t perf_faults_count(int fd)
{
	return perf_timer_count(fd);
}

bool perf_timer_enable(int fd, bool is_enabled, struct error *err)
{
	if (ioctl(fd, is_enabled ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0) != 0)
		return error_set_system(err, errno, "switch a CPU's timer");
	return true;
}

uint64_t perf_timer_count(int fd)
{
	uint64_t count;

	return read(fd, &count, sizeof count) == sizeof count ? count : 0;
}

/* --- samples without BPF --- */

static bool sampler_failed(struct error *err, int os_error, const struct perf_sampler *sampler)
{
	if (sampler->thread != PERF_EVERY_THREAD || (os_error != EPERM && os_error != EACCES))
		return open_failed(err, os_error, sampler->thread, sampler->cpu);
	error_set(
		err, ERROR_UNSUPPORTED,
		"sample all processes by perf events: not permitted; it takes root, CAP_PERFMON "
		"(before Linux 5.8 CAP_SYS_ADMIN), or kernel.perf_event_paranoid 0 (it is %" PRId64
		"); --pid is for processes of one's own",
		kernel_sysctl("kernel/perf_event_paranoid"));
	if (err)
		err->os_error = os_error;
	return false;
}

int perf_sampler_open(const struct perf_sampler *sampler, struct error *err)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = sampler->period_ns, /* fixed, see perf_timer_open() */
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER |
			       PERF_SAMPLE_STACK_USER,
		.sample_regs_user = PERF_USER_REGISTERS,
		.sample_stack_user = sampler->stack_bytes,
		.exclude_callchain_user = 1,
		.exclude_kernel = sampler->is_user_only,
		.exclude_hv = sampler->is_user_only,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = sampler->wakeup_bytes,
		.disabled = 1,
	};
	int fd = perf_open(&attributes, sampler->thread, sampler->cpu);

	if (fd < 0)
		sampler_failed(err, errno, sampler);
	return fd;
}

bool perf_sampler_set_period(int fd, uint64_t period_ns, struct error *err)
{
	if (ioctl(fd, PERF_EVENT_IOC_PERIOD, &period_ns) != 0)
		return error_set_system(err, errno, "change a timer's period");
	return true;
}

/* --- process events --- */

static int events_open(unsigned cpu, int thread, bool has_build_ids)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME, /* what sample_id_all appends */
		.sample_id_all = 1,
		.mmap = 1, /* executable mappings only: without mmap_data */
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = 1,
		.build_id = has_build_ids,
		.exclude_kernel = 1, /* it counts nothing; asks for fewer rights so */
	};

	return perf_open(&attributes, thread, cpu);
}

int perf_process_events_open(unsigned cpu, int thread, bool *has_build_ids, struct error *err)
{
	int fd = events_open(cpu, thread, *has_build_ids);

	if (fd < 0 && *has_build_ids && (errno == EINVAL || errno == E2BIG)) {
		*has_build_ids = false;
		fd = events_open(cpu, thread, false);
	}
	if (fd < 0)
		open_failed(err, errno, thread, cpu);
	return fd;
}

bool perf_ring_attach(struct perf_ring *ring, int fd, unsigned pages, struct error *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	*ring = (struct perf_ring){.fd = fd, .bytes = pages * page};
	ring->base = mmap(NULL, page + ring->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring->base == MAP_FAILED) {
		error_set_system(err, errno, "map a ring of perf events");
		ring->base = NULL;
		perf_ring_close(ring);
		return false;
	}
	return true;
}

bool perf_ring_join(const struct perf_ring *ring, int fd, struct error *err)
{
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) != 0)
		return error_set_system(err, errno, "share a ring of perf events");
	return true;
}

bool perf_ring_open(struct perf_ring *ring, unsigned cpu, unsigned pages, bool *has_build_ids,
		    struct error *err)
{
	int fd = perf_process_events_open(cpu, PERF_EVERY_THREAD, has_build_ids, err);

	*ring = (struct perf_ring){.fd = -1};
	return fd >= 0 && perf_ring_attach(ring, fd, pages, err);
}

void perf_ring_close(struct perf_ring *ring)
{
	if (ring->base)
		munmap(ring->base, (size_t)sysconf(_SC_PAGESIZE) + ring->bytes);
	if (ring->fd > 0)
		close(ring->fd);
	free(ring->record);
	memset(ring, 0, sizeof *ring);
	ring->fd = -1;
}

void perf_ring_look(struct perf_ring *ring)
{
	struct perf_event_mmap_page *control = (void *)ring->base;

	if (control)
		ring->head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
}

const void *perf_ring_next(struct perf_ring *ring, size_t *length)
{
	const uint8_t *data = ring->base + (size_t)sysconf(_SC_PAGESIZE);
	size_t at = ring->tail & (ring->bytes - 1), size, first;
	const struct perf_event_header *header;

	if (!ring->base || ring->head - ring->tail < sizeof *header)
		return NULL;
	header = (const void *)(data + at); /* 8 bytes, 8-aligned: never split */
	size = header->size;
	if (size < sizeof *header || size > ring->head - ring->tail) {
		/* Cannot be; what follows could not be found either. */
		perf_ring_release(ring, ring->head - ring->tail);
		return NULL;
	}
	*length = size;
	first = ring->bytes - at;
	if (size <= first)
		return data + at;
	if (!ring->record && !(ring->record = malloc(PERF_RECORD_BYTES_MAX))) {
		perf_ring_release(ring, size);
		return NULL;
	}
	memcpy(ring->record, data + at, first);
	memcpy(ring->record + first, data, size - first);
	return ring->record;
}

void perf_ring_release(struct perf_ring *ring, size_t length)
{
	struct perf_event_mmap_page *control = (void *)ring->base;

	ring->tail += length;
	__atomic_store_n(&control->data_tail, ring->tail, __ATOMIC_RELEASE);
}

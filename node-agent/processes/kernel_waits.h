/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel's functions on a stack say of a wait: what was waited for, and of the wake-up
 * that ended it: whether it was the current thread's doing, or that of an interrupt that came over
 * it. By names, of kernels from 5.10 to 7.0, each looked up once. */
#ifndef NODE_AGENT_PROCESSES_KERNEL_WAITS_H
#define NODE_AGENT_PROCESSES_KERNEL_WAITS_H

#include <stddef.h>
#include <stdint.h>

/* The label "wait" of off-cpu and still-blocked. Rows are only ever added. */
#define WAIT_CLASSES(CLASS)                                                         \
	CLASS(other, "other")                                                       \
	CLASS(lock, "lock") /* futexes, locks of files, semaphores, the kernel's */ \
	CLASS(sleep, "sleep")                                                       \
	CLASS(timer, "timer") /* a timerfd */                                       \
	CLASS(poll, "poll")   /* epoll, poll, select, eventfd, inotify */           \
	CLASS(socket, "socket")                                                     \
	CLASS(pipe, "pipe")                                                         \
	CLASS(disk, "disk")                                                         \
	CLASS(file, "file") /* other reading, writing, opening: also of devices */  \
	CLASS(page_fault, "page-fault")                                             \
	CLASS(child, "child")                                                       \
	CLASS(signal, "signal")                                                     \
	CLASS(terminal, "terminal")                                                 \
	CLASS(queue, "queue") /* of messages */                                     \
	CLASS(io_uring, "io-uring")                                                 \
	CLASS(memory, "memory") /* until some is freed */                           \
	CLASS(device, "device") /* an ioctl */                                      \
	CLASS(throttled, "throttled")                                               \
	CLASS(gil, "gil") /* an interpreter's lock: never by the kernel's functions */

#define WAIT_CLASS_ENUM(id_, name_) WAIT_##id_,
enum wait_class { WAIT_CLASSES(WAIT_CLASS_ENUM) WAIT_CLASS_COUNT };

/* Who wakes; the label "waker" of those that are no thread. */
enum kernel_waker { WAKER_THREAD, WAKER_TIMER, WAKER_NETWORK, WAKER_INTERRUPT };

enum { KERNEL_WAIT_RANGES_MAX = 1024 }; /* some 400 on x86-64 */

struct kernel_wait_range {
	uint64_t start, end;
	uint8_t wait, mark; /* enum wait_class; what it says of a wake-up */
};

struct kernel_waits {
	uint32_t count; /* 0: the kernel does not say where its functions are */
	uint32_t dropped;
	struct kernel_wait_range ranges[KERNEL_WAIT_RANGES_MAX]; /* by address */
};

void kernel_waits_find(const char *proc_root, struct kernel_waits *out);

const char *wait_class_name(enum wait_class class);

/* frames: of the kernel part, leaf first; all but the first are return addresses. "" where the
 * kernel does not say. */
const char *kernel_waits_class(const struct kernel_waits *waits, const uint64_t *frames,
			       size_t count);

/* *own: so many of the first frames are the interrupt's; the others are of whom it came over. */
enum kernel_waker kernel_waits_waker(const struct kernel_waits *waits, const uint64_t *frames,
				     size_t count, size_t *own);
const char *kernel_waker_name(enum kernel_waker waker); /* "" for a thread */

#endif

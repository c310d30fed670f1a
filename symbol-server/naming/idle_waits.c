/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/naming/idle_waits.h"

#include <stddef.h>
#include <string.h>

/* Sorted. */
static const char *const functions[] = {
	"__pthread_clockjoin_ex",
	"__pthread_cond_clockwait",
	"__pthread_cond_timedwait",
	"__pthread_cond_wait",
	"core_sys_select",
	"do_accept",
	"do_epoll_wait",
	"do_mq_timedreceive",
	"do_msgrcv",
	"do_nanosleep",
	"do_poll",
	"do_select",
	"do_sigtimedwait",
	"do_sys_poll",
	"ep_poll",
	"hrtimer_nanosleep",
	"inet_csk_accept",
	"io_cqring_wait",
	"pthread_cond_clockwait",
	"pthread_cond_timedwait",
	"pthread_cond_wait",
	"runtime.netpoll",
	"runtime.stopm",
	"runtime.sysmon",
	"sem_clockwait",
	"sem_timedwait",
	"sem_wait",
	"sigsuspend",
	"timerfd_read",
	"timerfd_read_iter",
	"unix_accept",
};

bool idle_waits_has_type(const char *type)
{
	return !strcmp(type, "off-cpu") || !strcmp(type, "still-blocked");
}

bool idle_waits_has_function(const char *name)
{
	size_t low = 0, high = sizeof(functions) / sizeof(*functions);

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(name, functions[middle]);

		if (!order)
			return true;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return false;
}

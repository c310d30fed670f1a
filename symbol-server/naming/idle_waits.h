/* SPDX-License-Identifier: Apache-2.0 */
/* Which functions wait for work to come, by name: a stack of waits through one of them is idle.
 * Kernel: poll and its kin, sleeping, accept, timerfd, signals, message queues, io_uring. User:
 * condition variables and semaphores of the C library, parked threads of Go. A rule, no more: who
 * waits for an answer by a condition variable is idle by it, who waits for a mutex is not. */
#ifndef SYMBOL_SERVER_NAMING_IDLE_WAITS_H
#define SYMBOL_SERVER_NAMING_IDLE_WAITS_H

#include <stdbool.h>

#define IDLE_FRAME "[idle]"

/* Types whose waits can be folded. */
bool idle_waits_has_type(const char *type);
bool idle_waits_has_function(const char *name);

#endif

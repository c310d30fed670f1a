/* SPDX-License-Identifier: Apache-2.0 */
/* How the server's life looks from outside: signals, what the log says while a start takes long,
 * what the service manager is told (Type=notify). */
#ifndef SYMBOL_SERVER_LIFE_H
#define SYMBOL_SERVER_LIFE_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "common/error.h"

struct life {
	const char *address;          /* shown */
	_Atomic(const char *) *doing; /* static texts: what the start is at */
	sigset_t signals;
	pthread_t thread;
	bool is_starting;
	_Atomic bool is_started;
};

/* SIGINT, SIGTERM and SIGHUP wait from now on, also in threads started later. */
void life_hold_signals(struct life *life);

/* Until life_started() a thread says every few seconds what the start is at, when it takes longer
 * than two, asks the service manager for patience, and ends the process at SIGTERM and SIGINT: what
 * was acknowledged is on disk. doing is borrowed. */
bool life_start(struct life *life, _Atomic(const char *) *doing, struct error *err);
/* The start is over; ok: the service manager hears that it is ready. */
void life_started(struct life *life, bool ok);

/* Until SIGTERM or SIGINT; SIGHUP does nothing. is_alive is asked now and then where the service
 * manager has a watchdog: only a process in which it returns is alive. */
void life_wait(struct life *life, void (*is_alive)(void *context), void *context);

#endif

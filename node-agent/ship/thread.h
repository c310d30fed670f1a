/* SPDX-License-Identifier: Apache-2.0 */
/* A thread with its lock and its alarm clock, which never sees a signal. */
#ifndef NODE_AGENT_SHIP_THREAD_H
#define NODE_AGENT_SHIP_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/sandbox.h"

struct thread {
	pthread_t id;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool has_lock, is_started;
	bool is_stopping; /* under the lock */
	bool has_sandbox;
	struct sandbox_thread sandbox; /* its texts are borrowed */
	const char *name;
	void (*run)(void *context);
	void *context;
};

/* name: 15 characters at most; borrowed. may: what is left to it of the agent's rights, NULL: all
 * of them. One that reads what a server said has none, nor the network. Where the kernel cannot
 * take them it runs all the same, and says so. */
bool thread_start(struct thread *thread, const char *name, const struct sandbox_thread *may,
		  void (*run)(void *context), void *context, struct error *err);

void thread_lock(struct thread *thread);
void thread_unlock(struct thread *thread);

/* Under the lock. thread_wait() returns at until_ms (monotonic_ms()'s clock, INT64_MAX = not by
 * time) or when woken, whichever comes first, or for no reason. */
void thread_wait(struct thread *thread, int64_t until_ms);
void thread_wake(struct thread *thread);
bool thread_is_stopping(const struct thread *thread);

/* Asks run() to return and waits for it. False: it has not within limit_ms and goes on by itself,
 * so nothing it uses may be freed. */
bool thread_stop(struct thread *thread, int limit_ms);

/* The lock goes; after thread_stop() was true, or for one that was never started ({0}). */
void thread_release(struct thread *thread);

#endif

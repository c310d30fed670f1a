/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/ship/thread.h"

#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "common/clock.h"
#include "common/log.h"

enum { STACK_BYTES = 512 << 10 };

static void *start(void *argument)
{
	struct thread *thread = argument;
	struct error err = {0};

	/* Sending can wait, whatever the main thread's haste: 0 is this thread in Linux. */
	if (getpriority(PRIO_PROCESS, 0) < 0)
		setpriority(PRIO_PROCESS, 0, 0);
	if (thread->has_sandbox && !sandbox_enter_thread(&thread->sandbox, &err))
		log_warn("thread keeps its rights", "thread=%s why=\"%s\"", thread->name,
			 err.message);
	thread->run(thread->context);
	return NULL;
}

static int create(struct thread *thread)
{
	sigset_t all, before;
	pthread_attr_t attributes;
	int failure;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	/* Signals belong to the main thread; one that is blocked here also turns SIGPIPE into
	 * EPIPE. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failure = pthread_create(&thread->id, &attributes, start, thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return failure;
}

bool thread_start(struct thread *thread, const char *name, const struct sandbox_thread *may,
		  void (*run)(void *context), void *context, struct error *err)
{
	pthread_condattr_t attributes;
	int failure;

	*thread = (struct thread){.name = name, .run = run, .context = context};
	thread->has_sandbox = may;
	if (may)
		thread->sandbox = *may;
	pthread_mutex_init(&thread->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&thread->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	thread->has_lock = true;
	failure = create(thread);
	if (failure)
		return error_set_system(err, failure, "start the thread '%s'", name);
	thread->is_started = true;
	pthread_setname_np(thread->id, name);
	return true;
}

void thread_lock(struct thread *thread)
{
	pthread_mutex_lock(&thread->lock);
}

void thread_unlock(struct thread *thread)
{
	pthread_mutex_unlock(&thread->lock);
}

static struct timespec at_ms(int64_t ms)
{
	return (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
}

void thread_wait(struct thread *thread, int64_t until_ms)
{
	struct timespec until = at_ms(until_ms);

	if (until_ms == INT64_MAX)
		pthread_cond_wait(&thread->changed, &thread->lock);
	else
		pthread_cond_timedwait(&thread->changed, &thread->lock, &until);
}

void thread_wake(struct thread *thread)
{
	pthread_cond_broadcast(&thread->changed);
}

bool thread_is_stopping(const struct thread *thread)
{
	return thread->is_stopping;
}

bool thread_stop(struct thread *thread, int limit_ms)
{
	struct timespec until = at_ms(monotonic_ms() + limit_ms);

	if (!thread->is_started)
		return true;
	thread_lock(thread);
	thread->is_stopping = true;
	thread_wake(thread);
	thread_unlock(thread);
	if (pthread_clockjoin_np(thread->id, NULL, CLOCK_MONOTONIC, &until) != 0) {
		pthread_detach(thread->id);
		return false;
	}
	thread->is_started = false;
	return true;
}

void thread_release(struct thread *thread)
{
	if (!thread->has_lock)
		return;
	pthread_cond_destroy(&thread->changed);
	pthread_mutex_destroy(&thread->lock);
	thread->has_lock = false;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/life.h"

#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/service_notify.h"

enum {
	LOOK_MS = 100,
	LONG_MS = 2000,   /* a start that takes longer says what it does */
	AGAIN_MS = 10000, /* and again so often */
	PATIENCE_S = 60,  /* asked for with each look */
	NOTIFY_MS = 5000,
};

/* The next of the held signals, at most so long; 0: none came. */
static int next_signal(const struct life *life, int64_t wait_ms)
{
	struct timespec wait = {wait_ms / 1000, wait_ms % 1000 * 1000000};
	int number = sigtimedwait(&life->signals, NULL, &wait);

	return number == SIGHUP || number < 0 ? 0 : number;
}

void life_hold_signals(struct life *life)
{
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&life->signals);
	sigaddset(&life->signals, SIGINT);
	sigaddset(&life->signals, SIGTERM);
	sigaddset(&life->signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &life->signals, NULL);
}

static void say_stopping(int number)
{
	service_notify("STOPPING=1\nSTATUS=stopping");
	log_info("stopping", "signal=%d", number);
}

/* --- starting --- */

static void tell(const struct life *life, int64_t since_ms)
{
	log_info("starting", "address=%s doing=\"%s\" since=%llds", life->address, *life->doing,
		 (long long)((monotonic_ms() - since_ms) / 1000));
}

static void *watch_start(void *context)
{
	struct life *life = context;
	int64_t since_ms = monotonic_ms(), tell_ms = since_ms + LONG_MS, notify_ms = since_ms;
	const char *told = NULL;

	while (!life->is_started) {
		int number = next_signal(life, LOOK_MS);
		int64_t now = monotonic_ms();

		if (number) {
			say_stopping(number);
			_exit(EXIT_SUCCESS);
		}
		if (now >= notify_ms || (told && told != *life->doing)) {
			service_notify(
				"STATUS=starting: %s\nEXTEND_TIMEOUT_USEC=%d000000\nWATCHDOG=1",
				*life->doing, PATIENCE_S);
			notify_ms = now + NOTIFY_MS;
		}
		if (now >= tell_ms || (told && told != *life->doing)) {
			told = *life->doing;
			tell(life, since_ms);
			tell_ms = now + AGAIN_MS;
		}
	}
	return NULL;
}

bool life_start(struct life *life, _Atomic(const char *) *doing, struct error *err)
{
	int error;

	life->doing = doing;
	error = pthread_create(&life->thread, NULL, watch_start, life);
	life->is_starting = !error;
	return !error || error_set_system(err, error, "start a thread");
}

void life_started(struct life *life, bool ok)
{
	life->is_started = true;
	if (life->is_starting)
		pthread_join(life->thread, NULL);
	life->is_starting = false;
	if (ok)
		service_notify("READY=1\nSTATUS=ready at %s", life->address);
}

/* --- serving --- */

void life_wait(struct life *life, void (*is_alive)(void *context), void *context)
{
	int64_t watchdog_ms = service_watchdog_ms();
	int number;

	while (!(number = next_signal(life, watchdog_ms ? watchdog_ms / 3 : 3600000))) {
		if (!watchdog_ms)
			continue;
		is_alive(context);
		service_notify("WATCHDOG=1");
	}
	say_stopping(number);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 1200, HOLD_BACK_MS = 1000 };

static enum log_level highest = LOG_INFO;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void log_set_level(enum log_level level)
{
	highest = level;
}

enum log_level log_level(void)
{
	return highest;
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* True: this line may be written; repeats is how many were not. */
static bool site_may_write(struct log_site *site, unsigned *repeats)
{
	int64_t now = now_ms();

	if (site->last_ms && now - site->last_ms < HOLD_BACK_MS) {
		site->held_back++;
		return false;
	}
	site->last_ms = now;
	*repeats = site->held_back;
	site->held_back = 0;
	return true;
}

/* Text from files and the network ends up in lines: no control characters may leave. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
}

void log_write(struct log_site *site, enum log_level level, const char *event, const char *format,
	       ...)
{
	static const char *const names[] = { "error", "warn", "info", "debug" };
	char line[LINE_MAX_BYTES];
	unsigned repeats = 0;
	size_t used;
	va_list args;

	if (level > highest)
		return;
	pthread_mutex_lock(&lock);
	if (!site_may_write(site, &repeats))
		goto out;
	used = (size_t)snprintf(line, sizeof line - 64, "%s %s ", names[level], event);
	if (used > sizeof line - 64)
		used = sizeof line - 64;
	va_start(args, format);
	vsnprintf(line + used, sizeof line - 64 - used, format, args);
	va_end(args);
	make_printable(line);
	used = strlen(line);
	if (repeats)
		used += (size_t)snprintf(line + used, 60, " repeats_held_back=%u", repeats);
	line[used++] = '\n';
	/* One write, so that lines of several processes do not mix. */
	if (write(STDERR_FILENO, line, used) < 0) {
		/* nowhere left to say it */
	}
out:
	pthread_mutex_unlock(&lock);
}

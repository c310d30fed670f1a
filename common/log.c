/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log.h"

#include <pthread.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"

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

/* True: this line may be written; repeats is how many were not. */
static bool site_may_write(struct log_site *site, unsigned *repeats)
{
	int64_t now = monotonic_ms();

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

/* $JOURNAL_STREAM is the device and inode of the stream that systemd gave a service,
 * systemd.exec(5): without it, or with stderr led elsewhere, nobody would take the prefix off
 * again. */
static bool is_journal(void)
{
	static int known = -1;
	const char *stream;
	unsigned long long device, inode;
	struct stat st;

	if (known < 0) {
		stream = getenv("JOURNAL_STREAM");
		known = stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
			!fstat(STDERR_FILENO, &st) && st.st_dev == device && st.st_ino == inode;
	}
	return known;
}

/* Under the lock. In one write, so that lines of several processes do not mix. */
static void put_line(enum log_level level, const char *event, const char *format, va_list args,
		     const char *end)
{
	static const char *const names[] = {"error", "warn", "info", "debug"};
	static const char *const priorities[] = {"<3>", "<4>", "<6>", "<7>"};
	char line[LINE_MAX_BYTES];
	size_t room = sizeof line - strlen(end) - 2, used;

	used = (size_t)snprintf(line, room, "%s%s %s ", is_journal() ? priorities[level] : "",
				names[level], event);
	if (used >= room)
		used = room - 1;
	vsnprintf(line + used, room - used, format, args);
	make_printable(line);
	used = strlen(line);
	used += (size_t)snprintf(line + used, sizeof line - used, "%s\n", end);
	if (write(STDERR_FILENO, line, used) < 0) {
		/* nowhere left to say it */
	}
}

void log_write(struct log_site *site, enum log_level level, const char *event, const char *format,
	       ...)
{
	char end[40] = "";
	unsigned repeats = 0;
	va_list args;

	if (level > highest)
		return;
	pthread_mutex_lock(&lock);
	if (site_may_write(site, &repeats)) {
		if (repeats)
			snprintf(end, sizeof end, " repeats_held_back=%u", repeats);
		va_start(args, format);
		put_line(level, event, format, args, end);
		va_end(args);
	}
	pthread_mutex_unlock(&lock);
}

/* --- a fault that lasts --- */

bool log_fault_came(struct log_fault *fault, uint64_t amount, int64_t now_ms)
{
	int64_t forgotten_ms = 2 * fault->distance_ms;

	if (forgotten_ms < LOG_FAULT_FORGOTTEN_MS)
		forgotten_ms = LOG_FAULT_FORGOTTEN_MS;
	if (!fault->times || now_ms - fault->last_ms > forgotten_ms)
		*fault = (struct log_fault){
			.begin_ms = now_ms, .next_ms = now_ms, .distance_ms = LOG_FAULT_FIRST_MS};
	fault->times++;
	fault->sum += amount;
	fault->last_ms = now_ms;
	if (now_ms < fault->next_ms)
		return false;
	fault->next_ms = now_ms + fault->distance_ms;
	fault->distance_ms *= 2;
	if (fault->distance_ms > LOG_FAULT_LAST_MS)
		fault->distance_ms = LOG_FAULT_LAST_MS;
	return true;
}

static void fault_end(const struct log_fault *fault, const char *key, char *end, size_t room)
{
	int used = snprintf(end, room, " %s=%" PRId64 " times=%" PRIu64, key,
			    (fault->last_ms - fault->begin_ms) / 1000, fault->times);

	if (fault->sum)
		snprintf(end + used, room - (size_t)used, " sum=%" PRIu64, fault->sum);
}

void log_fault_write(struct log_fault *fault, uint64_t amount, enum log_level level,
		     const char *event, const char *format, ...)
{
	char end[100] = "";
	va_list args;

	pthread_mutex_lock(&lock);
	if (log_fault_came(fault, amount, monotonic_ms()) && level <= highest) {
		if (fault->times > 1)
			fault_end(fault, "lasts_s", end, sizeof end);
		va_start(args, format);
		put_line(level, event, format, args, end);
		va_end(args);
	}
	pthread_mutex_unlock(&lock);
}

static void put_over(const char *event, const char *end, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	put_line(LOG_INFO, event, format, args, end);
	va_end(args);
}

void log_fault_over(struct log_fault *fault, const char *event)
{
	char end[100];

	pthread_mutex_lock(&lock);
	if (fault->times && LOG_INFO <= highest) {
		fault->last_ms = monotonic_ms();
		fault_end(fault, "it_took_s", end, sizeof end);
		put_over(event, end, "is=over");
	}
	*fault = (struct log_fault){0};
	pthread_mutex_unlock(&lock);
}

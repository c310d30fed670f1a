/* SPDX-License-Identifier: Apache-2.0 */
/* One line per event on stderr: level, event, key=value pairs. The service manager adds the time;
 * where stderr is the journal, the level comes before it as sd-daemon(3) has it ("<4>").
 *	log_info("profile accepted", "host=%s samples=%u", host, samples);
 * Repeats of one call site are held back to one a second, and the next line says how many. */
#ifndef COMMON_LOG_H
#define COMMON_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

struct log_site {
	int64_t last_ms; /* monotonic; when this site last wrote */
	unsigned held_back;
};

/* What is above this level is not written. Default LOG_INFO. */
void log_set_level(enum log_level level);
enum log_level log_level(void);

/* Thread-safe. Values with spaces should be written quoted by the caller: name="%s". */
void log_write(struct log_site *site, enum log_level level, const char *event, const char *format,
	       ...) __attribute__((format(printf, 4, 5)));

#define LOG_AT(level_, event_, ...)                             \
	do {                                                    \
		static struct log_site site_;                   \
		log_write(&site_, level_, event_, __VA_ARGS__); \
	} while (0)

#define log_error(event_, ...) LOG_AT(LOG_ERROR, event_, __VA_ARGS__)
#define log_warn(event_, ...)  LOG_AT(LOG_WARN, event_, __VA_ARGS__)
#define log_info(event_, ...)  LOG_AT(LOG_INFO, event_, __VA_ARGS__)
#define log_debug(event_, ...) LOG_AT(LOG_DEBUG, event_, __VA_ARGS__)

/* ---- a fault that lasts ----
 * Said when it begins, then at distances that double from a second to an hour, each line with how
 * often it came in all; and once when it is over, with how long it took. What has not come for
 * twice the distance, and ten minutes at least, has ended unseen, and begins anew. */

enum {
	LOG_FAULT_FIRST_MS = 1000,
	LOG_FAULT_LAST_MS = 3600 * 1000,
	LOG_FAULT_FORGOTTEN_MS = 600000
};

struct log_fault {                                       /* {0}: there is none */
	int64_t begin_ms, last_ms, next_ms, distance_ms; /* monotonic */
	uint64_t times, sum;
};

/* It came once more, at now_ms. True: it is time for a line. Pure. */
bool log_fault_came(struct log_fault *fault, uint64_t amount, int64_t now_ms);

/* Thread-safe. amount: what the lines add up as "sum", such as samples; 0: nothing. */
void log_fault_write(struct log_fault *fault, uint64_t amount, enum log_level level,
		     const char *event, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
/* It does not come any more: a line where there was one. Cheap where there is no fault. */
void log_fault_over(struct log_fault *fault, const char *event);

#endif

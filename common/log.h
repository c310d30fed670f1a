/* SPDX-License-Identifier: Apache-2.0 */
/* One line per event on stderr: level, event, key=value pairs. The service manager adds the time.
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

#define LOG_AT(level_, event_, ...)                                                                \
	do {                                                                                       \
		static struct log_site site_;                                                      \
		log_write(&site_, level_, event_, __VA_ARGS__);                                    \
	} while (0)

#define log_error(event_, ...) LOG_AT(LOG_ERROR, event_, __VA_ARGS__)
#define log_warn(event_, ...)  LOG_AT(LOG_WARN, event_, __VA_ARGS__)
#define log_info(event_, ...)  LOG_AT(LOG_INFO, event_, __VA_ARGS__)
#define log_debug(event_, ...) LOG_AT(LOG_DEBUG, event_, __VA_ARGS__)

#endif

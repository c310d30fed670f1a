/* SPDX-License-Identifier: Apache-2.0 */
/* The one way a function says why it failed. */
#ifndef COMMON_ERROR_H
#define COMMON_ERROR_H

#include <stdbool.h>

#ifdef __cplusplus /* query/pattern is the one place of C++: RE2 */
extern "C" {
#endif

enum error_kind {
	ERROR_NONE,
	ERROR_MEMORY,	   /* an allocation failed */
	ERROR_SYSTEM,	   /* a system call failed; os_error holds errno */
	ERROR_FORMAT,	   /* input bytes do not follow their format */
	ERROR_LIMIT,	   /* a stated limit would be passed */
	ERROR_NOT_FOUND,   /* what was asked for is not there */
	ERROR_CONFLICT,	   /* it is there, but is something else */
	ERROR_REMOTE,	   /* the other side refused or went away */
	ERROR_UNSUPPORTED, /* this kernel or build cannot do it */
	ERROR_OPTION,	   /* an option or parameter has a value it cannot have */
	ERROR_BUSY,	   /* overloaded now; trying again later can succeed */
};

/* Fixed size, so that reporting a failure never needs memory.
 * Start it as { 0 }. A function that fails fills it, outputs stay untouched. */
struct error {
	enum error_kind kind;
	int os_error;
	char message[400];
};

/* All return false, so that a failing function ends in one line:
 *	return error_set(err, ERROR_FORMAT, "frame %u has no mapping", i);
 * err may be NULL when the caller does not want to know. */
bool error_set(struct error *err, enum error_kind kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same for a failed system call; ": strerror" is added. */
bool error_set_system(struct error *err, int os_error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Sets ERROR_MEMORY, with one sentence for whoever asked. False. */
bool error_no_memory(struct error *err);

/* The system or the database said that the disk has no room. */
bool error_is_no_room(const struct error *err);

/* Put what the caller was doing in front of what went wrong: "open 'x': No such file". */
bool error_prefix(struct error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif

#endif

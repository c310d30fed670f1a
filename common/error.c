/* SPDX-License-Identifier: Apache-2.0 */
#include "common/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool error_set(struct error *err, enum error_kind kind, const char *format, ...)
{
	va_list args;

	if (!err)
		return false;
	err->kind = kind;
	err->os_error = 0;
	va_start(args, format);
	vsnprintf(err->message, sizeof err->message, format, args);
	va_end(args);
	return false;
}

bool error_set_system(struct error *err, int os_error, const char *format, ...)
{
	char why[128];
	va_list args;
	size_t used;

	if (!err)
		return false;
	err->kind = ERROR_SYSTEM;
	err->os_error = os_error;
	va_start(args, format);
	vsnprintf(err->message, sizeof err->message, format, args);
	va_end(args);
	used = strlen(err->message);
	snprintf(err->message + used, sizeof err->message - used, ": %s",
		 strerror_r(os_error, why, sizeof why));
	return false;
}

bool error_no_memory(struct error *err)
{
	return error_set(err, ERROR_MEMORY, "out of memory; try again later");
}

bool error_is_no_room(const struct error *err)
{
	return err->os_error == ENOSPC || err->os_error == EDQUOT;
}

bool error_prefix(struct error *err, const char *format, ...)
{
	char before[sizeof err->message];
	va_list args;
	size_t used;

	if (!err)
		return false;
	memcpy(before, err->message, sizeof before);
	va_start(args, format);
	vsnprintf(err->message, sizeof err->message, format, args);
	va_end(args);
	used = strlen(err->message);
	snprintf(err->message + used, sizeof err->message - used, ": %.*s",
		 (int)(sizeof before - 1), before);
	return false;
}

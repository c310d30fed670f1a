/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/kernel/cpu_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One number below CPU_LIMIT; false: there is none. */
static bool parse_number(const char **at, unsigned *number)
{
	char *end;
	unsigned long value;

	if (**at < '0' || **at > '9')
		return false;
	value = strtoul(*at, &end, 10);
	*at = end;
	*number = (unsigned)value;
	return value < CPU_LIMIT;
}

unsigned cpu_list_parse(const char *text, bool *is_listed, size_t room)
{
	unsigned first, last, limit = 0;

	memset(is_listed, 0, room * sizeof *is_listed);
	for (;;) {
		if (!parse_number(&text, &first))
			return 0;
		last = first;
		if (*text == '-') {
			text++;
			if (!parse_number(&text, &last) || last < first)
				return 0;
		}
		for (unsigned cpu = first; cpu <= last && cpu < room; cpu++)
			is_listed[cpu] = true;
		if (last >= limit)
			limit = last + 1;
		if (*text != ',')
			break;
		text++;
	}
	return *text == '\0' || *text == '\n' ? limit : 0;
}

unsigned cpu_list_read(const char *path, bool *is_listed, size_t room, struct error *err)
{
	char text[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	int os_error = errno;
	unsigned limit;

	if (fd >= 0)
		close(fd);
	if (length < 0) {
		error_set_system(err, os_error, "read '%s'", path);
		return 0;
	}
	text[length] = '\0';
	limit = cpu_list_parse(text, is_listed, room);
	if (!limit)
		error_set(err, ERROR_FORMAT, "'%s' is not a list of CPUs", path);
	return limit;
}

unsigned cpu_list_count(const bool *is_listed, size_t room)
{
	unsigned count = 0;

	for (size_t cpu = 0; cpu < room; cpu++)
		count += is_listed[cpu];
	return count ? count : 1;
}

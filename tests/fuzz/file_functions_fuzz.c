/* SPDX-License-Identifier: Apache-2.0 */
/* Symbol tables of uploaded files, as the server itself searches them for names. */
#include "symbol-server/symbolize/file_functions.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

static bool goes_on(void *context, struct error *err)
{
	(void)context;
	(void)err;
	return true;
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	static const char *const names[] = {"f", "main", "malloc", "_Z1fv"};
	struct file_function found[FILE_FUNCTIONS_MAX];
	int fd = memfd_create("file", MFD_CLOEXEC);
	struct file_search_limits limits = {.bytes = 1 << 20, .goes_on = goes_on};
	struct error err;
	size_t count;

	if (fd >= 0 && write(fd, bytes, length) == (ssize_t)length) {
		file_functions_find(fd, names, sizeof(names) / sizeof(*names), &limits, found,
				    &count, &err);
		if (count > FILE_FUNCTIONS_MAX)
			abort();
		for (size_t i = 0; i < count; i++)
			if (found[i].name >= sizeof(names) / sizeof(*names))
				abort();
	}
	if (fd >= 0)
		close(fd);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the server itself, outside of the worker, looks at in an uploaded file. */
#include "symbol-server/symbolize/sources/uploads.h"

#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	struct build_id id = {.length = 20, .bytes = {1, 2, 3}};
	int fd = memfd_create("upload", MFD_CLOEXEC);
	enum upload_kind kind = UPLOAD_KINDS;
	struct error err = {0};
	unsigned worth;

	if (fd >= 0 && write(fd, bytes, length) == (ssize_t)length &&
	    (upload_sniff(fd, &id, &kind, &worth, &err) ? kind >= UPLOAD_KINDS : !*err.message))
		abort(); /* it is one of the kinds, or there is a sentence why not */
	if (fd >= 0)
		close(fd);
}

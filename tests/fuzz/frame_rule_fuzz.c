/* SPDX-License-Identifier: Apache-2.0 */
/* An ELF file's unwind tables, asked for every sixteenth address that a small file can have. */
#include "node-agent/unwind/frame_rule.h"

#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	int fd = memfd_create("frame_rule", MFD_CLOEXEC);

	if (fd < 0)
		abort();
	if (write(fd, bytes, length) == (ssize_t)length)
		for (uint64_t address = 0; address < 1024; address += 16)
			if (frame_rule_read(fd, address).kind > FRAME_RULE_OTHER)
				abort();
	close(fd);
}

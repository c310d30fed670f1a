/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are an ELF file that may define the thread-local symbol of OTEP 4947. */
#include "node-agent/file_parser/tls_file.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	int fd = memfd_create("tls_file", MFD_CLOEXEC);
	struct code_file code;
	struct tls_symbol symbol;

	if (fd < 0 || write(fd, bytes, length) != (ssize_t)length)
		abort();
	memset(&symbol, 0xff, sizeof symbol);
	if (code_file_open(&code, fd)) {
		tls_file_read(&code, &symbol);
		code_file_close(&code);
		if (symbol.is_defined > 1 || symbol.slot_count > TLS_SLOTS_MAX)
			abort();
		for (uint32_t i = 0; i < symbol.slot_count; i++)
			if (symbol.slots[i].kind >= TLS_SLOT_KINDS)
				abort();
	}
	close(fd);
}

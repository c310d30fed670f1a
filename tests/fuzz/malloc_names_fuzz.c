/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are an ELF file that may have functions which take memory; and the code of one. */
#include "node-agent/file_parser/malloc_names.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "node-agent/file_parser/probe_place.h"
#include "tests/fuzz/fuzz.h"

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	int fd = memfd_create("malloc_names", MFD_CLOEXEC);
	struct memory_places places = {0};
	struct code_file code;
	size_t place = probe_place(bytes, length);

	if (place && (place >= length || !probe_is_cheap(bytes + place, length - place)))
		abort();
	if (fd < 0 || write(fd, bytes, length) != (ssize_t)length)
		abort();
	if (code_file_open(&code, fd)) {
		malloc_names_find(&code, &places);
		code_file_close(&code);
		if (places.count > MEMORY_PLACES_MAX)
			abort();
		for (uint32_t i = 0; i < places.count; i++)
			if (places.items[i].kind >= MEMORY_PLACE_KINDS ||
			    places.items[i].skip >= PROBE_PLACE_BYTES)
				abort();
	}
	close(fd);
}

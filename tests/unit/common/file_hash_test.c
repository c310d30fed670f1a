/* SPDX-License-Identifier: Apache-2.0 */
/* The hashes were made with Python:
 * hashlib.sha256(b[:4096] + b[-4096:] + struct.pack(">Q", len(b))).hexdigest()[:32]. */
#include "common/file_hash.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/check.h"

/* length bytes 0, 1, … 250, 0 … */
static int file_of(size_t length)
{
	int fd = memfd_create("hash", MFD_CLOEXEC);
	uint8_t *bytes = malloc(length + 1);

	for (size_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)(i % 251);
	if (write(fd, bytes, length) != (ssize_t)length) {
		close(fd);
		fd = -1;
	}
	free(bytes);
	return fd;
}

int main(void)
{
	static const struct {
		size_t length;
		const char *hash;
	} cases[] = {
		{0, "af5570f5a1810b7af78caf4bc70a660f"},
		{1, "52807a4607ea5debf0b7d4ccb452f4af"},
		{4095, "770c9562e0bb264672773e0eba6236c5"},
		{4096, "6c3376bc183b0a4994bc0b2c2c9d8b05"},
		{4097, "5caa6d2c6348b199ee7902cd00aa97b0"},
		{8192, "a7b0097f07ff25b7b48b13edc4aa7939"},
		{100000, "4feba4f4dcc392647124e0ac3e1dfdd3"},
	};
	struct build_id id;
	char hex[BUILD_ID_HEX];
	struct error err = {0};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		int fd = file_of(cases[i].length);

		CHECK(file_hash(fd, &id, NULL));
		CHECK_TEXT(build_id_format(&id, hex), cases[i].hash);
		close(fd);
	}
	CHECK(!file_hash(-1, &id, &err));
	CHECK_NUMBER(err.kind, ERROR_SYSTEM);
	return checks_done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The name of a file's content: the GNU build-id, or the hash that stands in for a missing one. */
#ifndef COMMON_BUILD_ID_H
#define COMMON_BUILD_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	BUILD_ID_MAX = 64,	     /* bytes; elfutils' own limit */
	BUILD_ID_MIN = 4,	     /* bytes; lld's --build-id=fast makes 8, hand-written ones may be less */
	BUILD_ID_HEX = 2 * BUILD_ID_MAX + 1,
	FILE_HASH_BYTES = 16,	     /* OpenTelemetry's htlhash */
};

struct build_id {
	uint8_t length; /* 0: none */
	uint8_t bytes[BUILD_ID_MAX];
};

/* False: not 4 to 64 bytes. */
bool build_id_set(struct build_id *id, const void *bytes, size_t length);
/* Strict: an even number of hexadecimal digits, either case. text need not end in NUL. */
bool build_id_parse(struct build_id *id, const char *text, size_t length);
/* Lower-case hexadecimal, NUL-terminated; returns hex. */
const char *build_id_format(const struct build_id *id, char hex[BUILD_ID_HEX]);
bool build_id_equal(const struct build_id *a, const struct build_id *b);
uint64_t build_id_hash(const struct build_id *id);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "common/build_id.h"

#include <string.h>

#include "common/hex.h"
#include "common/hash_table.h"

bool build_id_set(struct build_id *id, const void *bytes, size_t length)
{
	if (length < BUILD_ID_MIN || length > BUILD_ID_MAX)
		return false;
	memset(id, 0, sizeof *id);
	id->length = (uint8_t)length;
	memcpy(id->bytes, bytes, length);
	return true;
}

bool build_id_parse(struct build_id *id, const char *text, size_t length)
{
	uint8_t bytes[BUILD_ID_MAX];

	if (length % 2 || length / 2 < BUILD_ID_MIN || length / 2 > BUILD_ID_MAX)
		return false;
	for (size_t i = 0; i < length / 2; i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		bytes[i] = (uint8_t)(high << 4 | low);
	}
	return build_id_set(id, bytes, length / 2);
}

const char *build_id_format(const struct build_id *id, char hex[BUILD_ID_HEX])
{
	static const char digits[] = "0123456789abcdef";
	size_t length = id->length <= BUILD_ID_MAX ? id->length : 0;

	for (size_t i = 0; i < length; i++) {
		hex[2 * i] = digits[id->bytes[i] >> 4];
		hex[2 * i + 1] = digits[id->bytes[i] & 15];
	}
	hex[2 * length] = '\0';
	return hex;
}

bool build_id_equal(const struct build_id *a, const struct build_id *b)
{
	return a->length == b->length && !memcmp(a->bytes, b->bytes, a->length);
}

uint64_t build_id_hash(const struct build_id *id)
{
	return hash_bytes(id->bytes, id->length, 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of an OTLP Resource that a stranger wrote, read in place: values nest as deep as
 * the stranger likes, and this looks no further than lists of texts (field numbers in
 * schema/wire/profiles.proto). */
#ifndef COMMON_OTLP_ATTRIBUTES_H
#define COMMON_OTLP_ATTRIBUTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OTLP_ATTRIBUTES_BYTES_MAX = 64 << 10 };

struct otlp_attribute {
	const char *key, *value; /* value NULL: a list */
	const char *const *list; /* of texts: what is none of these is "" */
	size_t list_count;
};

/* Calls found for each attribute that is a text, a number, a truth value or a list; others are
 * passed over. Everything is borrowed for the call. False: not a Resource, or longer than
 * OTLP_ATTRIBUTES_BYTES_MAX; what came before it was told. */
bool otlp_resource_attributes(const uint8_t *bytes, size_t length,
			      void (*found)(void *context, const struct otlp_attribute *attribute),
			      void *context);

#endif

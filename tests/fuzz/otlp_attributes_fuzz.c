/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are the Resource of a process context. */
#include <string.h>

#include "common/otlp_attributes.h"
#include "tests/fuzz/fuzz.h"

static volatile size_t sum;

static void found(void *context, const struct otlp_attribute *attribute)
{
	(void)context;
	sum += strlen(attribute->key) + (attribute->value ? strlen(attribute->value) : 0);
	for (size_t i = 0; i < attribute->list_count; i++)
		sum += strlen(attribute->list[i]);
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	otlp_resource_attributes(bytes, length, found, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/dictionary/catalog_lifetimes.h"

#include <string.h>

static const char *text_of(const void *catalog, uint32_t number)
{
	return catalog_string(catalog, number)->text;
}

struct lifetimes *catalog_lifetimes_new(const struct catalog *catalog, uint32_t strings)
{
	struct lifetimes *lifetimes = lifetimes_new(text_of, catalog, strings);

	for (uint32_t n = 1; lifetimes && n < strings; n++) {
		const struct catalog_string *string = catalog_string(catalog, n);

		if (memchr(string->text, CONTEXT_KEY, string->length) &&
		    !lifetimes_add(lifetimes, n)) {
			lifetimes_free(lifetimes);
			return NULL;
		}
	}
	return lifetimes;
}

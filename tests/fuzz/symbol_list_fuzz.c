/* SPDX-License-Identifier: Apache-2.0 */
/* The server's answer to where functions lie. What is taken says the same when it is written
 * again. */
#include "node-agent/ship/symbol_list.h"

#include <inttypes.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

static const char *const names[] = {"malloc", "calloc", "_Znwm", "je_malloc"};

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	struct symbol_list list, again;
	struct buffer text;

	if (!symbol_list_parse((struct bytes){bytes, length}, names, 4, &list, NULL))
		return;
	if (list.count > SYMBOL_LIST_MAX)
		abort();
	buffer_init(&text, 1 << 20);
	for (uint32_t i = 0; i < list.count; i++) {
		if (list.items[i].name >= 4)
			abort();
		buffer_printf(&text, "%s 0x%" PRIx64 " %" PRIu64 "\n", names[list.items[i].name],
			      list.items[i].address, list.items[i].bytes);
	}
	if (!symbol_list_parse((struct bytes){text.bytes, text.length}, names, 4, &again, NULL) ||
	    again.count != list.count ||
	    memcmp(again.items, list.items, list.count * sizeof *list.items) != 0)
		abort();
	buffer_release(&text);
}

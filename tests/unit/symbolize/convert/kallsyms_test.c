/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/convert/kallsyms.h"

#include <stdlib.h>

#include "symbol-server/symbolize/convert/debug_reader.h"
#include "symbol-server/symbolize/symbol_table.h"
#include "tests/check.h"

static struct symbol_table *convert(const char *text, struct error *err)
{
	struct debug_input input = {(void *)strdup(text), strlen(text)};
	struct symbol_table *table = NULL;
	struct buffer packed;

	buffer_init(&packed, 1 << 20);
	if (debug_reader_convert(&input, 1, false, &packed, err))
		table = symbol_table_unpack(packed.bytes, packed.length, 1 << 20, err);
	buffer_release(&packed);
	free(input.bytes);
	return table;
}

static const char *name_at(const struct symbol_table *table, enum address_base base,
			   uint64_t address)
{
	struct symbol_frame frames[SYMBOL_CHAIN_MAX];

	return symbol_table_lookup(table, base, address, frames) ? frames[0].name : "";
}

static void kernel(void)
{
	struct error err = {0};
	struct symbol_table *table = convert("farflame-kallsyms 1\n"
					     "2000 T do_idle\n"
					     "0 T _text\n"
					     "0 T startup_64\n"
					     "1000 t early_idt_handler\n"
					     "1000 W weak_alias\n"
					     "3000 D some_data\n"
					     "900000 t far_away\n",
					     &err);

	CHECK_TEXT(err.message, "");
	CHECK(table);
	if (!table)
		return;
	CHECK_NUMBER(table->quality, QUALITY_KALLSYMS);
	CHECK_TEXT(name_at(table, ADDRESS_KERNEL_TEXT, 0), "startup_64"); /* fewer underscores */
	CHECK_TEXT(name_at(table, ADDRESS_KERNEL_TEXT, 0xfff), "startup_64");
	CHECK_TEXT(name_at(table, ADDRESS_KERNEL_TEXT, 0x1000), "weak_alias"); /* weak over local */
	CHECK_TEXT(name_at(table, ADDRESS_KERNEL_TEXT, 0x2fff), "do_idle");
	CHECK_TEXT(name_at(table, ADDRESS_KERNEL_TEXT, 0x3000), ""); /* data ends it */
	CHECK_TEXT(name_at(table, ADDRESS_KERNEL_TEXT, 0x900000 + KALLSYMS_EXTENT_MAX - 1),
		   "far_away");
	CHECK_TEXT(name_at(table, ADDRESS_KERNEL_TEXT, 0x900000 + KALLSYMS_EXTENT_MAX), "");
	CHECK_TEXT(name_at(table, ADDRESS_ELF, 0x2000), ""); /* ELF addresses are not known */
	CHECK_TEXT(name_at(table, ADDRESS_MODULE_TEXT, 0x2000), "");
	symbol_table_release(table);
}

static void module(void)
{
	struct error err = {0};
	struct symbol_table *table =
		convert("farflame-kallsyms 1\nmodule ext4\n10 t ext4_read [ext4]\n", &err);

	CHECK(table);
	if (!table)
		return;
	CHECK_TEXT(name_at(table, ADDRESS_MODULE_TEXT, 0x11), "ext4_read");
	CHECK_TEXT(name_at(table, ADDRESS_KERNEL_TEXT, 0x11), "");
	symbol_table_release(table);
}

static void refused(const char *text, const char *want)
{
	struct error err = {0};
	struct symbol_table *table = convert(text, &err);

	CHECK(!table);
	CHECK_TEXT(err.message, want);
	symbol_table_release(table);
}

int main(void)
{
	kernel();
	module();
	refused("farflame-kallsyms 1\n", "the kallsyms text has no symbols");
	refused("farflame-kallsyms 1\nmodule x\n", "the kallsyms text has no symbols");
	refused("farflame-kallsyms 1\n0 T ok\nxyz\n",
		"kallsyms line 3 is not \"offset type name\"");
	refused("farflame-kallsyms 1\n12345678901234567 T too_long\n",
		"kallsyms line 2 is not \"offset type name\"");
	refused("farflame-kallsyms 1\n0 T \n", "kallsyms line 2 is not \"offset type name\"");
	refused("farflame-kallsyms 1\nffffffff81000000 T absolute\n",
		"it is stripped: no debug information, no names of functions");
	refused("farflame-kallsyms 2\n0 T ok\n", "it is not an ELF file");
	return checks_done();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/go/go_labels.h"

#include <string.h>

#include "node-agent/file_parser/go/go_code.h"
#include "node-agent/file_parser/code/x86_code.h"

enum { CODE_BYTES = 256, OFFSET_MIN = 0x80, OFFSET_MAX = 0x400 };

enum function { SETS, MERGES, FUNCTIONS };
static const char *const names[FUNCTIONS] = {
	[SETS] = "runtime/pprof.runtime_setProfLabel",
	/* Since labels are a list: Go 1.24. */
	[MERGES] = "runtime/pprof.mergeLabelSets",
};

uint16_t go_label_store(const uint8_t *code, size_t length)
{
	struct x86_instruction instruction;

	for (size_t at = 0; at < length; at += instruction.length) {
		const uint8_t *bytes = code + at;
		int32_t offset;

		instruction = x86_decode(bytes, length - at);
		if (instruction.effect == X86_BAD)
			break;
		/* mov r64, offset(r64), the latter not the stack pointer */
		if (instruction.length != 7 || (bytes[0] & 0xfa) != 0x48 || bytes[1] != 0x89 ||
		    (bytes[2] & 0xc0) != 0x80 || (bytes[2] & 7) == 4)
			continue;
		memcpy(&offset, bytes + 3, sizeof offset);
		if (offset >= OFFSET_MIN && offset <= OFFSET_MAX && offset % 8 == 0)
			return (uint16_t)offset;
	}
	return 0;
}

static uint16_t read_store(const struct code_file *file, const struct go_span *function)
{
	uint8_t code[CODE_BYTES];
	uint64_t offset, left = code_file_offset(file, function->start, &offset);
	uint64_t length = function->end - function->start;

	if (length > left)
		length = left;
	if (length > CODE_BYTES)
		length = CODE_BYTES;
	return length && code_file_read(file, offset, code, (size_t)length)
		       ? go_label_store(code, (size_t)length)
		       : 0;
}

void go_labels_find(const struct code_file *file, struct go_table *table,
		    struct go_labels_place *place)
{
	struct go_span found[FUNCTIONS];
	struct go_descriptor descriptor;
	uint16_t labels;

	*place = (struct go_labels_place){0};
	go_table_find(table, names, FUNCTIONS, found);
	labels = read_store(file, &found[SETS]);
	if (!labels || !go_table_descriptor(table, &descriptor))
		return;
	*place = (struct go_labels_place){
		.is_defined = 1,
		.is_list = found[MERGES].end > found[MERGES].start,
		.tls = descriptor.tls,
		.curg = (uint16_t)descriptor.curg,
		.labels = labels,
	};
}

# SPDX-License-Identifier: Apache-2.0
# For the symbol tests: symbols as assembler code has them.
	.text
	.globl	unsized_first
unsized_first:				# NOTYPE, no size: up to the next symbol
	.skip	24, 0x90
	.type	sized_function,@function
	.globl	sized_function
sized_function:
	.skip	8, 0x90
inner_label:				# inside of a sized one: no name of its own
	.skip	8, 0x90
	.size	sized_function, .-sized_function
.annobin_labels.s_end:			# a tool's
	.skip	16, 0xcc		# padding: no name
	.type	unsized_function,@function
unsized_function:			# ends at the data
	.skip	16, 0x90
	.type	table,@object
table:
	.skip	32, 0x01
	.size	table, .-table
	.skip	16, 0xcc		# behind data: no name
	.type	both,@function
	.globl	both
label_of_both:				# NOTYPE where a function is
both:
	.skip	16, 0x90
	.size	both, .-both
	.globl	last_label
last_label:				# up to the section's end, and no farther
	.skip	8, 0x90
.Lassembler_own:
	.skip	8, 0x90
	.section .second,"ax",@progbits
	.skip	16, 0x90		# before the first symbol of its section: no name
	.globl	second_section
	.type	second_section,@function
second_section:
	.skip	16, 0x90
	.size	second_section, 16
	.set	absolute_symbol, 0x1004
	.globl	absolute_symbol

# SPDX-License-Identifier: Apache-2.0
# For the symbol tests: DWARF of a bad producer. outer is [0, 16); one inlined function sticks out of it,
# and its sibling lies over it.
	.text
	.globl	outer
	.type	outer,@function
outer:
	.skip	16, 0x90
	.size	outer, 16
behind:	.skip	16, 0x90
	.type	behind,@object
	.section .debug_abbrev,"",@progbits
	.uleb128 1			# compile unit
	.uleb128 0x11
	.byte	1
	.uleb128 0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0, 0
	.uleb128 2			# abstract function
	.uleb128 0x2e
	.byte	0
	.uleb128 0x03, 0x08, 0x20, 0x0b, 0, 0
	.uleb128 3			# function
	.uleb128 0x2e
	.byte	1
	.uleb128 0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0, 0
	.uleb128 4			# inlined function
	.uleb128 0x1d
	.byte	0
	.uleb128 0x31, 0x13, 0x11, 0x01, 0x12, 0x06, 0x59, 0x0b, 0, 0
	.byte	0
	.section .debug_info,"",@progbits
unit:	.long	end - start
start:	.2byte	4
	.long	.debug_abbrev
	.byte	8
	.uleb128 1
	.asciz	"bad_producer"
	.quad	outer
	.long	32
sticks:	.uleb128 2
	.asciz	"sticks_out"
	.byte	1
over:	.uleb128 2
	.asciz	"lies_over"
	.byte	1
	.uleb128 3
	.asciz	"outer"
	.quad	outer
	.long	16
	.uleb128 4
	.long	sticks - unit
	.quad	outer + 8
	.long	16
	.byte	3
	.uleb128 4
	.long	over - unit
	.quad	outer + 4
	.long	8
	.byte	4
	.byte	0
	.byte	0
end:

# SPDX-License-Identifier: Apache-2.0
# For the symbol tests, with kernel.ld: what only a kernel's file has.
	.text
	.globl	start_here
	.type	start_here,@function
start_here:
	.skip	16, 0x90
	.size	start_here, 16
	.type	probe,@function
probe:	.skip	16, 0x90
	.size	probe, 16
	.section .init.text,"ax",@progbits
	.globl	only_at_start
	.type	only_at_start,@function
only_at_start:
	.skip	16, 0x90
	.size	only_at_start, 16
	.type	probe_twice,@function
probe_twice:
	.skip	16, 0x90
	.size	probe_twice, 16
	.section .data..percpu,"aw",@progbits
	.globl	per_cpu_function
	.type	per_cpu_function,@function
per_cpu_function:
	.skip	64
	.size	per_cpu_function, 64
	.set	absolute_one, 0xffffffff81000004
	.globl	absolute_one
	.section .notes.first,"a",@note
	.long	6, 4, 0x100
	.asciz	"Linux"
	.balign	4
	.long	0

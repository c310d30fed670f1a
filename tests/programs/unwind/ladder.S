/* SPDX-License-Identifier: Apache-2.0 */
/* Functions with call frame information that compilers seldom or never write. Each calls back(x) and
 * does some work itself: uint64_t NAME(uint64_t x). */
	.text

	.macro work_here
	mov	$60, %ecx
1:	imul	$0x5bd1e995, %rax, %rax
	ror	$13, %rax
	dec	%ecx
	jnz	1b
	.endm

/* Every register pushed and popped one by one, with a call at the bottom. */
	.globl	frame_pushes
	.type	frame_pushes, @function
frame_pushes:
	.cfi_startproc
	.irp	reg, rbx, rbp, r12, r13, r14, r15, rdi
	push	%\reg
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset \reg, 0
	mov	%rdi, %rax
	work_here
	.endr
	mov	%rdi, %rbp
	call	back
	work_here
	.irp	reg, rdi, r15, r14, r13, r12, rbp, rbx
	pop	%\reg
	.cfi_adjust_cfa_offset -8
	.cfi_restore \reg
	work_here
	.endr
	ret
	.cfi_endproc
	.size	frame_pushes, . - frame_pushes

/* The frame hangs on rbx, which the callee keeps, and the stack pointer moves about. */
	.globl	frame_rbx
	.type	frame_rbx, @function
frame_rbx:
	.cfi_startproc
	push	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	mov	%rsp, %rbx
	.cfi_def_cfa_register %rbx
	mov	%rdi, %rax
	sub	$4096, %rsp
	work_here
	and	$-256, %rsp
	work_here
	mov	%rbx, %rsp
	.cfi_def_cfa_register %rsp
	sub	$16, %rsp
	.cfi_adjust_cfa_offset 16
	call	back
	work_here
	add	$16, %rsp
	.cfi_adjust_cfa_offset -16
	pop	%rbx
	.cfi_def_cfa_offset 8
	.cfi_restore %rbx
	ret
	.cfi_endproc
	.size	frame_rbx, . - frame_rbx

/* The frame hangs on registers that no callee keeps: known at the interrupted instruction only. */
	.globl	frame_scratch
	.type	frame_scratch, @function
frame_scratch:
	.cfi_startproc
	mov	%rdi, %rax
	lea	8(%rsp), %r10
	.cfi_def_cfa %r10, 0
	sub	$512, %rsp
	work_here
	mov	%r10, %rdx
	.cfi_def_cfa %rdx, 0
	work_here
	mov	%rdx, %r11
	.cfi_def_cfa %r11, 0
	and	$-64, %rsp
	work_here
	lea	-8(%r11), %rsp
	.cfi_def_cfa %rsp, 8
	work_here
	ret
	.cfi_endproc
	.size	frame_scratch, . - frame_scratch

/* The return address in a register for a while. */
	.globl	frame_return_in_register
	.type	frame_return_in_register, @function
frame_return_in_register:
	.cfi_startproc
	mov	%rdi, %rax
	pop	%r9
	.cfi_def_cfa_offset 0
	.cfi_register %rip, %r9
	work_here
	work_here
	push	%r9
	.cfi_def_cfa_offset 8
	.cfi_offset %rip, -8
	ret
	.cfi_endproc
	.size	frame_return_in_register, . - frame_return_in_register

/* Realigned: the old stack pointer lies in memory, the frame is what lies there (an expression). */
	.globl	frame_deref
	.type	frame_deref, @function
frame_deref:
	.cfi_startproc
	mov	%rdi, %rax
	mov	%rsp, %r8
	.cfi_def_cfa_register %r8
	sub	$200, %rsp
	and	$-64, %rsp
	mov	%r8, 16(%rsp)
	/* DW_CFA_def_cfa_expression, 7 bytes: DW_OP_breg7 (rsp) 16, DW_OP_deref, DW_OP_plus_uconst 8, nop */
	.cfi_escape 0x0f, 0x06, 0x77, 0x10, 0x06, 0x23, 0x08, 0x96
	work_here
	call	back
	work_here
	mov	16(%rsp), %rsp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size	frame_deref, . - frame_deref

/* rbp is saved far from the usual place, and the rules are remembered over an early way out. */
	.globl	frame_remember
	.type	frame_remember, @function
frame_remember:
	.cfi_startproc
	mov	%rdi, %rax
	sub	$72, %rsp
	.cfi_def_cfa_offset 80
	mov	%rbp, 24(%rsp)
	.cfi_rel_offset %rbp, 24
	mov	$0x123, %ebp
	work_here
	test	$1, %dil
	jz	2f
	.cfi_remember_state
	mov	24(%rsp), %rbp
	.cfi_restore %rbp
	add	$72, %rsp
	.cfi_def_cfa_offset 8
	work_here
	ret
2:	.cfi_restore_state
	call	back
	work_here
	mov	24(%rsp), %rbp
	.cfi_restore %rbp
	add	$72, %rsp
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	frame_remember, . - frame_remember

	.section .note.GNU-stack, "", @progbits

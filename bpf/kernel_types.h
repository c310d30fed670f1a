/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Every kernel structure field we read, and no other. preserve_access_index makes the loader put in
 * the running kernel's offsets (CO-RE), so no vmlinux.h and no kernel headers are needed.
 * User registers have the layout of <asm/ptrace.h>, which is ABI. */
#ifndef BPF_KERNEL_TYPES_H
#define BPF_KERNEL_TYPES_H

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct mm_struct;

#if defined(__TARGET_ARCH_x86)
struct thread_struct {
	unsigned long fsbase; /* 4.13 */
};
#elif defined(__TARGET_ARCH_arm64)
struct thread_struct {
	struct {
		unsigned long tp_value; /* 4.17 */
	} uw;
};
#endif

struct sched_info {
	unsigned long long last_arrival;
};

struct task_struct {
	void *stack;
	struct mm_struct *mm;
	unsigned int flags;
	int pid;
	int tgid;
	struct task_struct *group_leader;
	__u64 start_boottime; /* 5.5 */
	__u64 self_exec_id;   /* 64 bits wide from 5.7 */
	char comm[16];
	unsigned int __state;         /* 5.14 */
	struct sched_info sched_info; /* with CONFIG_SCHED_INFO */
	struct thread_struct thread;
};

#pragma clang attribute pop

/* The kernel's own, of which arm64's programs only know the beginning. */
struct pt_regs___kernel {
	int unknown;
} __attribute__((preserve_access_index));

/* THREAD_SIZE without KASAN, which the loader knows better: arm64's stacks are whole pages. */
const volatile __u32 kernel_stack_bytes = 16384;

enum {
	TASK_IS_KERNEL_THREAD = 0x00200000, /* PF_KTHREAD */
	SIGNAL_STOP = 19,
};

#if defined(__TARGET_ARCH_x86)
typedef struct pt_regs user_registers;

static __always_inline int registers_are_user(const user_registers *registers)
{
	return (registers->cs & 3) == 3;
}

static __always_inline int registers_are_32bit(const user_registers *registers)
{
	return (registers->cs & 0xffff) == 0x23; /* __USER32_CS */
}

/* Bytes from the instruction that entered the kernel to the saved instruction pointer: a system
 * call's is the one after, an interrupt's or fault's the one itself (orig_rax is negative then).
 * The bytes are looked at because execve and signals replace the pointer within a system call. */
static __always_inline __u64 registers_entry_bytes(const user_registers *registers)
{
	__u16 code = 0;

	if ((long)registers->orig_rax < 0 ||
	    bpf_probe_read_user(&code, sizeof(code), (const void *)(registers->rip - 2)))
		return 0;
	return code == 0x050f ? sizeof(code) : 0; /* syscall */
}

static __always_inline int registers_are_system_call(const user_registers *registers)
{
	return (long)registers->orig_rax >= 0;
}

/* Where a thread waits that is in futex(), or in what goes on with it after a signal; else 0. */
static __always_inline __u64 registers_futex(const user_registers *registers)
{
	return registers->orig_rax == 202 || registers->orig_rax == 219 /* restart_syscall */
		       ? registers->rdi
		       : 0;
}

static __always_inline int registers_are_execve(const user_registers *registers)
{
	return registers->orig_rax == 59 || registers->orig_rax == 322; /* execveat */
}

/* In the order of their DWARF numbers. */
static __always_inline void registers_copy(__u64 *to, const user_registers *from)
{
	to[0] = from->rax;
	to[1] = from->rdx;
	to[2] = from->rcx;
	to[3] = from->rbx;
	to[4] = from->rsi;
	to[5] = from->rdi;
	to[6] = from->rbp;
	to[7] = from->rsp;
	to[8] = from->r8;
	to[9] = from->r9;
	to[10] = from->r10;
	to[11] = from->r11;
	to[12] = from->r12;
	to[13] = from->r13;
	to[14] = from->r14;
	to[15] = from->r15;
}

enum { REGISTERS_ALL = 0xffff };

/* A system call uses up rcx and r11, and rax for its result; interrupts and faults save all. */
static __always_inline __u64 registers_known(const user_registers *registers)
{
	return (long)registers->orig_rax < 0 ? REGISTERS_ALL
					     : REGISTERS_ALL & ~(1 << 0 | 1 << 2 | 1 << 11);
}
#elif defined(__TARGET_ARCH_arm64)
typedef struct user_pt_regs user_registers;

static __always_inline int registers_are_user(const user_registers *registers)
{
	return (registers->pstate & 0xf) == 0; /* EL0t, AArch64 or AArch32 */
}

static __always_inline int registers_are_32bit(const user_registers *registers)
{
	return (registers->pstate & 0x10) != 0; /* PSR_MODE32_BIT */
}

static __always_inline __u64 registers_entry_bytes(const user_registers *registers)
{
	(void)registers;
	return 0;
}

static __always_inline int registers_are_system_call(const user_registers *registers)
{
	(void)registers;
	return 0;
}

static __always_inline __u64 registers_futex(const user_registers *registers)
{
	return registers->regs[8] == 98 || registers->regs[8] == 128 /* restart_syscall */
		       ? registers->regs[0]
		       : 0;
}

static __always_inline int registers_are_execve(const user_registers *registers)
{
	return registers->regs[8] == 221 || registers->regs[8] == 281; /* execveat */
}

static __always_inline void registers_copy(__u64 *to, const user_registers *from)
{
	/* Unrolled: the verifier wants reads of a program's context at fixed places. */
#pragma unroll
	for (int i = 0; i < 31; i++)
		to[i] = from->regs[i];
	to[31] = from->sp;
}

#define REGISTERS_ALL 0xffffffffULL

static __always_inline __u64 registers_known(const user_registers *registers)
{
	(void)registers;
	return REGISTERS_ALL;
}
#else
#error "farflame knows x86-64 and arm64"
#endif

/* Of a thread; 0: it is not known. Exact unless the program has set it without the
 * kernel, by wrfsbase. */
static __always_inline __u64 thread_pointer_of(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return BPF_CORE_READ(task, thread.fsbase);
#else
	(void)task;
	return 0;
#endif
}

static __always_inline __u64 task_thread_pointer(void)
{
	return thread_pointer_of((struct task_struct *)bpf_get_current_task());
}

/* The same where it is only as good as when the thread left its CPU last: arm64 programs set theirs
 * without the kernel, and once. */
static __always_inline __u64 context_thread_pointer(void)
{
#if defined(__TARGET_ARCH_arm64)
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	return BPF_CORE_READ(task, thread.uw.tp_value);
#else
	return task_thread_pointer();
#endif
}

/* Where in its kernel stack a thread has the registers of its program, as task_pt_regs() does. */
static __always_inline __u32 saved_registers_at(void)
{
	return kernel_stack_bytes - bpf_core_type_size(struct pt_regs___kernel);
}

/* The registers a thread had when it entered the kernel. False: they could not be read. */
static __always_inline int task_user_registers(struct task_struct *task, user_registers *registers)
{
	const void *saved;

	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)) /* 5.15 */
		saved = (const void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	else
		saved = BPF_CORE_READ(task, stack) + saved_registers_at();
	return bpf_probe_read_kernel(registers, sizeof(*registers), saved) == 0;
}

#endif

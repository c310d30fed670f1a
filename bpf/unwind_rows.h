/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Unwind rows as they lie in the kernel's maps and in user space. A *page* is 64 KiB of one
 * executable's ELF addresses; its rows say, sorted by address, which *rule* holds from there on; a
 * rule says where the caller's frame is. Rows are loaded page by page when a sample meets one.
 *
 *	pages     hash    {executable, ELF address >> 16} → struct unwind_page
 *	rows      array of pools, each an array of elements of 1024 rows
 *	rules     array   shared by all executables, added to; begun anew when all pages are gone
 *	processes hash    tgid → index into heads
 *	heads     array   struct process_head: identity, and which blocks have the mappings
 *	blocks    array   struct process_block: 32 mappings, sorted
 *
 * Nothing published is rewritten: new rows, heads and blocks go to elements that no reader can
 * know, the hash entry last; what is given back is reused only after every reader in the kernel is
 * done. A reader checks a head's identity, since a hash value may be another's by then. */
#ifndef BPF_UNWIND_ROWS_H
#define BPF_UNWIND_ROWS_H

#include <linux/types.h>

enum {
	UNWIND_PAGE_BITS = 16,
	UNWIND_ELEMENT_ROWS = 1024, /* 4 KiB */
	UNWIND_POOL_ELEMENTS = 256, /* 1 MiB, made when the ones before are full */
	UNWIND_POOLS_MAX = 64,
	UNWIND_PAGE_ELEMENTS_MAX = 16,
	UNWIND_PAGE_ROWS_MAX = UNWIND_PAGE_ELEMENTS_MAX * UNWIND_ELEMENT_ROWS,
	UNWIND_RULES_MAX = 16384,
	UNWIND_PAGES_MAX = 16384,
};

/* From this address of the page (its low 16 bits) up to the next row the rule holds. A page's first
 * row is at 0: what holds there, although it may have begun in the page before. */
struct unwind_row {
	__u16 low, rule;
};

/* Where the canonical frame address is: what the stack pointer was before the call. */
enum unwind_cfa {
	UNWIND_CFA_NONE,     /* nothing is known here: between functions, or not expressible */
	UNWIND_CFA_END,      /* the return address is undefined: the outermost frame */
	UNWIND_CFA_REGISTER, /* cfa_register + cfa_offset */
	UNWIND_CFA_PLT,      /* sp + 8, and 8 more where (address & 15) >= cfa_offset */
	UNWIND_CFA_DEREF,    /* *(cfa_register + cfa_offset) + cfa_add */
	/* the kernel's signal frame: every register is in the ucontext at sp + cfa_offset */
	UNWIND_CFA_SIGNAL,
	/* Go's asmcgocall, on the system stack: its goroutine's frame goes on at
	 * *(*(sp + cfa_offset + 8) + 8) − *(sp + cfa_offset), which is the CFA less cfa_add */
	UNWIND_CFA_GO_SWITCH,
	/* Go's systemstack and morestack, on the system stack: the thread's goroutine goes on as
	 * its descriptor says. g = *(thread pointer + cfa_offset), m = g's, goroutine = *(m +
	 * cfa_add), whose frame pointer is at fp_offset. With ra_offset 0 the descriptor has the
	 * caller's address too; else its stack pointer is at the return address. */
	UNWIND_CFA_GO_GOROUTINE,
	UNWIND_CFA_COUNT,
};

/* The caller's frame pointer register. */
enum unwind_fp {
	UNWIND_FP_SAME,
	UNWIND_FP_AT_CFA,    /* *(CFA + fp_offset) */
	UNWIND_FP_AT_FP,     /* *(frame pointer + fp_offset) */
	UNWIND_FP_UNDEFINED, /* not to be used any more until some rule restores it */
	UNWIND_FP_COUNT,
};

enum unwind_ra {
	UNWIND_RA_AT_CFA,      /* *(CFA + ra_offset); x86-64: always −8 */
	UNWIND_RA_IN_REGISTER, /* register number ra_offset; known at an interrupted frame only */
	UNWIND_RA_COUNT,
};

enum unwind_rule_flags {
	/* Augmentation "S": the caller was interrupted here, its address is exact. */
	UNWIND_RULE_SIGNAL = 1 << 0,
	/* The function has moved to another stack: its frame may lie anywhere, also below. */
	UNWIND_RULE_OTHER_STACK = 1 << 1,
	/* Told from the instructions, not by a table. */
	UNWIND_RULE_GUESSED = 1 << 2,
};

/* Where the caller's UNWIND_REGISTER_KEPT is: one more of the registers that functions keep for
 * their callers. The dynamic linker's resolver has its frame by it, and so below it every first
 * call. The others are not followed: of 1.7 million rows of Debian 12's libraries and compilers 21
 * have their frame by one of r12 to r15; r10 and r11, 0.01 % of them, are used up by any call. */
enum unwind_kept {
	UNWIND_KEPT_SAME,
	/* else n: at CFA − 8 * n */
	UNWIND_KEPT_UNDEFINED = 255,
};

/* Registers have their DWARF numbers: System V ABI for x86-64, figure 3.36 (6 rbp, 7 rsp); DWARF
 * for the Arm 64-bit architecture, 4.1 (29 fp, 30 lr, 31 sp). */
struct unwind_rule {
	__u8 cfa, cfa_register; /* enum unwind_cfa */
	__u8 fp;                /* enum unwind_fp */
	__u8 ra;                /* enum unwind_ra */
	__u8 flags;             /* enum unwind_rule_flags */
	__u8 kept;              /* enum unwind_kept */
	__s16 ra_offset;
	__s32 cfa_offset;
	__s16 fp_offset;
	__s16 cfa_add;
};

#if defined(__TARGET_ARCH_arm64) || (!defined(__bpf__) && defined(__aarch64__))
enum { UNWIND_REGISTER_FP = 29, UNWIND_REGISTER_SP = 31, UNWIND_REGISTERS = 32 };
enum { UNWIND_REGISTER_KEPT = 19 };
#else
enum { UNWIND_REGISTER_FP = 6, UNWIND_REGISTER_SP = 7, UNWIND_REGISTERS = 16 };
enum { UNWIND_REGISTER_KEPT = 3 }; /* rbx */
#endif

/* What is known of the code at an address. */
enum stack_rule {
	STACK_RULE_FOUND,
	STACK_RULE_ABSENT, /* its rows, or its mapping, are not loaded: the walk stops here */
	/* Nothing that helps; the lower rungs may. */
	STACK_RULE_ANONYMOUS, /* no file's code */
	STACK_RULE_NO_TABLE,
	STACK_RULE_FAILED, /* there is a table, and it could not be used */
};

struct unwind_page_key {
	__u32 executable; /* its index, never 0 */
	__u32 page;       /* ELF address >> UNWIND_PAGE_BITS */
};

/* A page that is not in the map is wanted: its first sample copies its stack up. */
enum unwind_page_state {
	UNWIND_PAGE_ABSENT,
	UNWIND_PAGE_LOADED,
	UNWIND_PAGE_EMPTY,  /* no unwind information for this page: the ladder's lower rungs */
	UNWIND_PAGE_FAILED, /* there is some and it could not be used; the same rungs */
};

struct unwind_page {
	__u32 first_row; /* pool * 2^18 + element * 2^10 + slot; the others follow, also into the
			    next elements: UNWIND_PAGE_ELEMENTS_MAX at most, of one pool */
	__u16 count;     /* of rows, 1 to UNWIND_PAGE_ROWS_MAX */
	__u8 state;      /* enum unwind_page_state */
	__u8 reserved;
};

/* --- processes --- */

enum {
	PROCESS_BLOCK_MAPPINGS = 32,
	PROCESS_BLOCKS_MAX = 32, /* of one process: 1024 mappings, what is more is not walked */
	PROCESS_HEADS = 1024,
	PROCESS_BLOCKS = 1536,
};

enum {
	EXECUTABLE_NONE = 0, /* a file that is not known yet: the stack goes up */
};

#define EXECUTABLE_ANONYMOUS 0xffffffffU /* JIT memory: no rows, the lower rungs */

struct process_mapping {
	__u64 start, end;
	__u64 base;       /* ELF address = address − base, modulo 2^64 */
	__u32 executable; /* index, or EXECUTABLE_… */
	__u32 reserved;
};

struct process_block {
	struct process_mapping mappings[PROCESS_BLOCK_MAPPINGS];
};

struct process_head {
	__u64 start_time_ns; /* identity, as in samples: */
	__u32 tgid, exec_id;
	__u32 block_count, mapping_count;
	/* Changes with the mappings: user space publishes a new head. */
	__u32 generation, reserved;
	__u64 first_start[PROCESS_BLOCKS_MAX]; /* lowest address of each block, ascending */
	__u32 blocks[PROCESS_BLOCKS_MAX];      /* all but the last are full */
};

#endif

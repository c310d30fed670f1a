/* SPDX-License-Identifier: Apache-2.0 */
/* The notes' format: https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation. Written
 * out here, since each probe is a whole function: its arguments are where they are passed, and a
 * reader needs no parser of places. */
#include "node-agent/malloc/probes.h"

#if defined(__x86_64__)
#define ARGUMENT_1 "8@%rdi"
#define ARGUMENT_2 "8@%rsi"
#define ARGUMENT_3 "8@%rdx"
#elif defined(__aarch64__)
#define ARGUMENT_1 "8@x0"
#define ARGUMENT_2 "8@x1"
#define ARGUMENT_3 "8@x2"
#endif

#define LISTENERS __attribute__((section(".probes"), used))
volatile uint16_t probe_alloc_listeners LISTENERS;
volatile uint16_t probe_free_listeners LISTENERS;
volatile uint16_t probe_batch_listeners LISTENERS;

/* Tools compare this section's address with what the notes say it was: prelinking moves both. */
__asm__(".pushsection .stapsdt.base, \"a\", %progbits\n"
	"stapsdt_base:\n"
	"	.space 1\n"
	".popsection\n");

#define PROBE(function_, name_, arguments_, listeners_)                         \
	__asm__(".pushsection .text, \"ax\", %progbits\n"                       \
		"	.hidden " #function_ "\n"                               \
		"	.globl " #function_ "\n"                                \
		"	.type " #function_ ", %function\n" #function_ ":\n"     \
		"	.cfi_startproc\n"                                             \
		"	nop\n"                                                        \
		"	ret\n"                                                        \
		"	.cfi_endproc\n"                                               \
		"	.size " #function_ ", . - " #function_ "\n"             \
		".popsection\n"                                                 \
		".pushsection .note.stapsdt, \"\", %note\n"                     \
		"	.balign 4\n"                                                  \
		"	.4byte 8, 92f - 91f, 3\n"                                     \
		"	.asciz \"stapsdt\"\n"                                         \
		"91:	.8byte " #function_ ", stapsdt_base, " #listeners_ "\n" \
		"	.asciz \"otel_memory\"\n"                                     \
		"	.asciz \"" name_ "\"\n"                                 \
		"	.asciz \"" arguments_ "\"\n"                            \
		"92:	.balign 4\n"                                               \
		".popsection\n")

PROBE(probe_alloc, "alloc", ARGUMENT_1 " " ARGUMENT_2 " " ARGUMENT_3, probe_alloc_listeners);
PROBE(probe_free, "free", ARGUMENT_1, probe_free_listeners);
PROBE(probe_batch, "batch", ARGUMENT_1 " " ARGUMENT_2 " " ARGUMENT_3, probe_batch_listeners);

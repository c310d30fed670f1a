/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/go/go_code.h"

#include <string.h>

/* --- the frame pointer --- */

static bool is_at(const uint8_t *code, size_t length, size_t at, const char *bytes, size_t count)
{
	return at <= length && count <= length - at && memcmp(code + at, bytes, count) == 0;
}
#define IS_AT(code, length, at, bytes) is_at(code, length, at, "" bytes, sizeof(bytes) - 1)

/* An instruction between rbp and rsp + offset, its first two bytes given: its length, or 0. */
static size_t stack_operand(const uint8_t *code, size_t length, size_t at, const char first[2],
			    uint64_t offset)
{
	int32_t wide;

	if (!is_at(code, length, at, first, 2) || length - at < 8)
		return 0;
	if (code[at + 2] == 0x2c && code[at + 3] == 0x24)
		return offset == 0 ? 4 : 0;
	if (code[at + 2] == 0x6c && code[at + 3] == 0x24)
		return offset == code[at + 4] && offset < 128 ? 5 : 0;
	memcpy(&wide, code + at + 4, sizeof wide);
	return code[at + 2] == 0xac && code[at + 3] == 0x24 && wide >= 0 && (uint64_t)wide == offset
		       ? 8
		       : 0;
}

struct go_frame go_frame_read(const uint8_t *code, size_t length, uint64_t address, uint64_t depth)
{
	struct go_frame frame = {UINT64_MAX, UINT64_MAX};
	size_t store, load;

	/* Since Go 1.21: push %rbp; mov %rsp,%rbp. */
	if (depth == 8 && IS_AT(code, length, 0, "\x55")) {
		frame.saved = address;
		if (IS_AT(code, length, 1, "\x48\x89\xe5"))
			frame.set = address + 3;
		return frame;
	}
	/* Before: mov %rbp,depth-8(%rsp); lea depth-8(%rsp),%rbp. */
	store = depth >= 8 ? stack_operand(code, length, 1, "\x48\x89", depth - 8) : 0;
	if (!store)
		return frame;
	frame.saved = address + store;
	load = stack_operand(code, length, 1 + store, "\x48\x8d", depth - 8);
	if (load)
		frame.set = address + store + load;
	return frame;
}

/* --- functions that are not like others --- */

enum treatment {
	PLAIN,
	TOP,               /* from its first instruction on */
	TOP_BEHIND_SWITCH, /* from where it has another stack */
	LOST_BEHIND_SWITCH,
	LEFT_BEHIND_SWITCH, /* and its descriptor says how it goes on */
	FRAMED,             /* keeps the frame pointer while it is on another stack */
	FRAMED_OR_LEFT,
	CALLS_C,
	RETURNS_FROM_SIGNAL,
	HOLDS_RETURN,
	INJECTED,
};

static const struct {
	const char *name;
	enum treatment treatment;
} specials[] = {
	/* The ends of Go's own tracebacks, without a caller on any stack: goexit's is made up, and
	 * the kernel starts _rt0_amd64_linux, which jumps on to rt0_go. */
	{"runtime.goexit", TOP},
	{"runtime.rt0_go", TOP},
	{"_rt0_amd64_linux", TOP},
	{"_rt0_amd64", TOP},
	/* Go stops here too, but clone, rt0_go or C has called the one, the kernel the other. */
	{"runtime.mstart", PLAIN},
	{"runtime.sigtramp", PLAIN},
	/* The goroutine has been left; it is the scheduler that goes on. */
	{"runtime.mcall", TOP_BEHIND_SWITCH},
	{"runtime.switchToCrashStack0", TOP_BEHIND_SWITCH},
	/* In the new thread. */
	{"runtime.clone", TOP_BEHIND_SWITCH},
	/* The goroutine goes on afterwards, and only its descriptor says where it was. */
	{"runtime.morestack", LEFT_BEHIND_SWITCH},
	{"runtime.gogo", LOST_BEHIND_SWITCH},
	{"gogo", LOST_BEHIND_SWITCH},
	{"runtime.systemstack", FRAMED_OR_LEFT},
	{"runtime.cgocallback", FRAMED},
	{"runtime.asmcgocall_no_g", FRAMED},
	{"runtime.nanotime1", FRAMED},
	{"runtime.walltime", FRAMED},
	{"runtime.walltime1", FRAMED},
	{"runtime.vgetrandom1", FRAMED},
	{"runtime.sigfwd", FRAMED},
	{"runtime.callCgoMmap", FRAMED},
	{"runtime.callCgoMunmap", FRAMED},
	{"runtime.callCgoSigaction", FRAMED},
	{"time.now", FRAMED},
	{"runtime.asmcgocall", CALLS_C},
	{"runtime.sigreturn", RETURNS_FROM_SIGNAL},
	{"runtime.sigreturn__sigaction", RETURNS_FROM_SIGNAL},
	{"syscall.rawVforkSyscall", HOLDS_RETURN},
	{"runtime.asyncPreempt", INJECTED},
	{"runtime.sigpanic", INJECTED},
	{"runtime.sigpanic0", INJECTED},
	{"runtime.debugCallV1", INJECTED},
	{"runtime.debugCallV2", INJECTED},
};

/* What Go code calls to get from its calling convention to assembly's has the same name, and some
 * only jump on to another that has it. */
static bool is_meant(const struct go_function *function, enum treatment treatment)
{
	if (!function->has_flags || treatment == INJECTED)
		return true;
	if (!(function->flags & GO_ASSEMBLY))
		return false;
	return function->flags & GO_WRITES_SP ||
	       (treatment != TOP_BEHIND_SWITCH && treatment != LOST_BEHIND_SWITCH &&
		treatment != LEFT_BEHIND_SWITCH && treatment != FRAMED &&
		treatment != FRAMED_OR_LEFT && treatment != CALLS_C);
}

static enum treatment treatment_of(const struct go_function *function)
{
	for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
		if (strcmp(function->name, specials[i].name) == 0)
			return is_meant(function, specials[i].treatment) ? specials[i].treatment
									 : PLAIN;
	if (function->flags & GO_TOP_FRAME)
		return TOP;
	return function->flags & GO_WRITES_SP ? LOST_BEHIND_SWITCH : PLAIN;
}

bool go_function_leaves(const struct go_function *function)
{
	enum treatment treatment = treatment_of(function);

	return treatment == LEFT_BEHIND_SWITCH || treatment == FRAMED_OR_LEFT;
}

bool go_function_is_plain(const struct go_function *function)
{
	return treatment_of(function) == PLAIN;
}

static void part_add(struct go_function *function, uint64_t from, enum go_way way, int32_t offset)
{
	if (function->part_count < GO_PARTS_MAX)
		function->parts[function->part_count++] = (struct go_part){from, way, offset};
}

/* The length of an instruction that gives the stack pointer a value the table cannot know: mov to
 * %rsp from a register or memory, or and $…,%rsp. 0: it is none of them. */
static size_t switch_length(const uint8_t *code, size_t length, size_t at)
{
	uint8_t rex, operand;

	if (length - at < 5)
		return 0;
	rex = code[at];
	operand = code[at + 2];
	if ((rex == 0x48 || rex == 0x4c) && code[at + 1] == 0x89 && (operand & 0xc7) == 0xc4)
		return 3;
	if ((rex == 0x48 || rex == 0x49) && code[at + 1] == 0x8b && (operand & 0x38) == 0x20) {
		size_t sib = (operand & 7) == 4 && operand < 0xc0;

		return 3 + sib + (operand >> 6 == 1 ? 1 : operand >> 6 == 2 ? 4 : 0);
	}
	return rex == 0x48 && code[at + 1] == 0x83 && operand == 0xe4 ? 4 : 0;
}

/* Where the first such instruction ends, or, with room made for the alignment, begins; 0: nowhere.
 */
static size_t find_switch(const uint8_t *code, size_t length, size_t from)
{
	for (size_t at = from; at < length; at++) {
		size_t instruction = switch_length(code, length, at);

		if (!instruction)
			continue;
		if (code[at + 1] == 0x83 && at >= 4 && IS_AT(code, length, at - 4, "\x48\x83\xec"))
			return at;
		return at + instruction;
	}
	return 0;
}

/* --- the goroutine's descriptor --- */

/* The first load of g: mov %fs:tls,%reg, or, in code that may lie anywhere, mov $tls,%rcx;
 * mov %fs:(%rcx),%reg. Where only the dynamic linker knows the distance it is another. */
static bool find_tls(const uint8_t *code, size_t length, int32_t *tls)
{
	for (size_t at = 0; at + 11 <= length; at++) {
		if (IS_AT(code, length, at, "\x64\x48\x8b") && (code[at + 3] & 0xc7) == 0x04 &&
		    code[at + 4] == 0x25) {
			memcpy(tls, code + at + 5, sizeof *tls);
			return true;
		}
		if (IS_AT(code, length, at, "\x48\xc7\xc1") &&
		    IS_AT(code, length, at + 7, "\x64\x48\x8b") && (code[at + 10] & 0xc7) == 0x01) {
			memcpy(tls, code + at + 3, sizeof *tls);
			return true;
		}
	}
	return false;
}

/* mov between the register and disp8(any other): the first one's displacement, or −1. */
static int find_access(const uint8_t *code, size_t length, uint8_t operation, uint8_t reg,
		       int displacement)
{
	for (size_t at = 0; at + 4 <= length; at++)
		if (code[at] == 0x48 && code[at + 1] == operation &&
		    (code[at + 2] & 0xf8) == (0x40 | reg << 3) && (code[at + 2] & 7) != 4 &&
		    code[at + 3] < 128 && (displacement < 0 || code[at + 3] == displacement))
			return code[at + 3];
	return -1;
}

/* morestack notes in g, whose m it loads into rbx, the caller's address and stack pointer, by way
 * of rax, and its frame pointer. */
static void read_morestack(struct go_descriptor *descriptor, const uint8_t *code, size_t length)
{
	enum {
		LOAD = 0x8b,
		STORE = 0x89,
		RAX = 0,
		RBX = 3,
		RBP = 5,
		M = 0x30,
		SP = 0x38,
		PC = 0x40
	};
	int fp = find_access(code, length, STORE, RBP, -1);

	if (fp < 0 || find_access(code, length, LOAD, RBX, M) < 0 ||
	    find_access(code, length, STORE, RAX, SP) < 0 ||
	    find_access(code, length, STORE, RAX, PC) < 0)
		return;
	descriptor->has_g = find_tls(code, length, &descriptor->tls);
	descriptor->fp = (int16_t)fp;
}

/* systemstack compares g with what its m knows: cmp curg(%rbx),%rax; the others are nearer. */
static void read_systemstack(struct go_descriptor *descriptor, const uint8_t *code, size_t length)
{
	int32_t curg;

	for (size_t at = 0; at + 7 <= length; at++) {
		if (!IS_AT(code, length, at, "\x48\x3b\x83"))
			continue;
		memcpy(&curg, code + at + 3, sizeof curg);
		descriptor->has_curg = curg > 0 && curg <= INT16_MAX;
		descriptor->curg = (int16_t)curg;
		return;
	}
}

void go_descriptor_read(struct go_descriptor *descriptor, const struct go_function *function,
			const uint8_t *code, size_t length)
{
	switch (treatment_of(function)) {
	case LEFT_BEHIND_SWITCH:
		read_morestack(descriptor, code, length);
		break;
	case FRAMED_OR_LEFT:
		read_systemstack(descriptor, code, length);
		break;
	default:
		break;
	}
}

/* On the system stack from the switch on, up to the one that goes back. */
static void left_parts(struct go_function *function, const uint8_t *code, size_t length,
		       enum go_way way)
{
	const struct go_descriptor *descriptor = &function->descriptor;
	size_t at = find_switch(code, length, 0), back;

	if (!at || !descriptor->has_g || !descriptor->has_curg)
		way = GO_WAY_NONE;
	part_add(function, function->start + at, way, 0);
	back = at ? find_switch(code, length, at) : 0;
	if (back)
		part_add(function, function->start + back, GO_WAY_STACK, 0);
}

/* --- parts --- */

/* Its frame pointer shows the frame from where it is set; without one the frame is lost, or only
 * the descriptor says where it is. */
static void framed_parts(struct go_function *function, const uint8_t *code, size_t length,
			 enum treatment treatment)
{
	struct go_frame frame = {UINT64_MAX, UINT64_MAX};
	size_t lost;

	if (IS_AT(code, length, 0, "\x55"))
		frame = go_frame_read(code, length, function->start + 1, 8);
	else if (IS_AT(code, length, 0, "\x48\x83\xec") && length > 4)
		frame = go_frame_read(code + 3, length - 3, function->start + 4, code[3]);
	if (frame.set != UINT64_MAX) {
		part_add(function, frame.set, GO_WAY_FRAME, 0);
		return;
	}
	if (treatment == FRAMED_OR_LEFT) {
		left_parts(function, code, length, GO_WAY_CALLER);
		return;
	}
	lost = find_switch(code, length, 0);
	part_add(function, function->start + lost, GO_WAY_NONE, 0);
}

/* Stores of a register to the stack: the offset and the length, or false. */
static bool store_at(const uint8_t *code, size_t length, size_t at, uint8_t reg, int32_t *offset,
		     size_t *end)
{
	if (!IS_AT(code, length, at, "\x48\x89") || length - at < 5 || code[at + 3] != 0x24)
		return false;
	if (code[at + 2] == (0x04 | reg << 3)) {
		*offset = 0;
		*end = at + 4;
		return true;
	}
	*offset = (int8_t)code[at + 4];
	*end = at + 5;
	return code[at + 2] == (0x44 | reg << 3);
}

/* asmcgocall has two ways to call C. From a goroutine it takes the system stack and leaves there
 * the goroutine and, below it, how deep its stack was: mov %rdi,8+n(%rsp) … mov %rdi,n(%rsp).
 * Already on the system stack it leaves 0 and the old stack pointer: movq $0,8+n(%rsp); mov
 * %rdx,n(%rsp). Both end with mov %rsi,%rsp. */
static void c_call_parts(struct go_function *function, const uint8_t *code, size_t length)
{
	enum { RDI = 7, RDX = 2 };
	size_t end, at = find_switch(code, length, 4);
	int32_t goroutine = -1, offset;
	bool inside = at > 0;
	/* Before the call the frame pointer is still its own; afterwards the goroutine's stack may
	 * have moved. */
	enum go_way before = IS_AT(code, length, 0, "\x55\x48\x89\xe5") ? GO_WAY_FRAME
									: GO_WAY_NONE;

	part_add(function, function->start + at, at ? before : GO_WAY_NONE, 0);
	for (; at && at < length; at++) {
		if (inside && IS_AT(code, length, at, "\x48\x89\xf4")) {
			part_add(function, function->start + at + 3, GO_WAY_STACK, 0);
			inside = false;
			goroutine = -1;
			at += 2;
		} else if (!inside && IS_AT(code, length, at, "\x48\x83\xec")) {
			part_add(function, function->start + at + 4, before, 0);
			inside = true;
		} else if (inside && store_at(code, length, at, RDI, &offset, &end)) {
			if (goroutine == offset + 8)
				part_add(function, function->start + end, GO_WAY_SWITCH, offset);
			goroutine = offset;
		} else if (inside && store_at(code, length, at, RDX, &offset, &end)) {
			part_add(function, function->start + end, GO_WAY_SAVED, offset);
		}
	}
}

void go_function_parts(struct go_function *function, const uint8_t *code, size_t length)
{
	enum treatment treatment = treatment_of(function);
	size_t at;

	function->part_count = 0;
	function->is_injected = treatment == INJECTED;
	function->return_register = 0;
	part_add(function, function->start, treatment == TOP ? GO_WAY_END : GO_WAY_STACK, 0);
	switch (treatment) {
	case TOP_BEHIND_SWITCH:
	case LOST_BEHIND_SWITCH:
		/* Not found: nothing of it is trusted. */
		at = find_switch(code, length, IS_AT(code, length, 0, "\x55\x48\x89\xe5") ? 4 : 0);
		part_add(function, function->start + at,
			 at && treatment == TOP_BEHIND_SWITCH ? GO_WAY_END : GO_WAY_NONE, 0);
		break;
	case LEFT_BEHIND_SWITCH:
		left_parts(function, code, length, GO_WAY_LEFT);
		break;
	case FRAMED:
	case FRAMED_OR_LEFT:
		framed_parts(function, code, length, treatment);
		break;
	case CALLS_C:
		c_call_parts(function, code, length);
		break;
	case RETURNS_FROM_SIGNAL: /* mov $15,%rax; syscall, in its longer or shorter form */
		if (IS_AT(code, length, 0, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05") ||
		    IS_AT(code, length, 0, "\xb8\x0f\0\0\0\x0f\x05"))
			function->parts[0].way = GO_WAY_SIGNAL;
		break;
	case HOLDS_RETURN: /* pop %r12: what vfork's child does must not change it in memory */
		for (at = 0; at < length; at++)
			if (IS_AT(code, length, at, "\x41\x5c"))
				function->return_register = 12;
		break;
	case PLAIN:
	case TOP:
	case INJECTED:
		break;
	}
}

/* --- rules --- */

/* Between lowering the stack pointer and saving it the frame pointer is still the caller's. */
static void rule_fp(struct unwind_rule *rule, int64_t depth, uint64_t from,
		    const struct go_frame *frame)
{
	rule->fp = UNWIND_FP_UNDEFINED;
	if (depth == 0 || (from < frame->saved && frame->saved != UINT64_MAX)) {
		rule->fp = UNWIND_FP_SAME;
	} else if (depth >= 8 && frame->saved != UINT64_MAX) {
		rule->fp = UNWIND_FP_AT_CFA;
		rule->fp_offset = -16;
	}
}

struct unwind_rule go_rule(const struct go_function *function, const struct go_part *part,
			   int64_t depth, uint64_t from, const struct go_frame *frame)
{
	struct unwind_rule rule = {
		.cfa = UNWIND_CFA_REGISTER,
		.cfa_register = UNWIND_REGISTER_SP,
		.kept = UNWIND_KEPT_UNDEFINED, /* Go's functions keep no registers */
		.ra_offset = -8};
	enum go_way way = part->way;

	if (way == GO_WAY_END) {
		rule = (struct unwind_rule){.cfa = UNWIND_CFA_END};
		return rule;
	}
	if (way == GO_WAY_SIGNAL) {
		rule = (struct unwind_rule){.cfa = UNWIND_CFA_SIGNAL, .flags = UNWIND_RULE_SIGNAL};
		rule.cfa_register = UNWIND_REGISTER_SP;
		return rule;
	}
	if (depth == -8 && function->return_register) {
		rule.ra = UNWIND_RA_IN_REGISTER;
		rule.ra_offset = function->return_register;
		return rule;
	}
	if (way == GO_WAY_NONE || depth < 0)
		return (struct unwind_rule){.cfa = UNWIND_CFA_NONE};
	if (way == GO_WAY_CALLER || way == GO_WAY_LEFT)
		return (struct unwind_rule){.cfa = UNWIND_CFA_GO_GOROUTINE,
					    .cfa_offset = function->descriptor.tls,
					    .cfa_add = function->descriptor.curg,
					    .fp_offset = function->descriptor.fp,
					    .ra_offset = way == GO_WAY_CALLER ? -8 : 0};
	if (function->is_injected)
		rule.flags = UNWIND_RULE_SIGNAL;
	rule_fp(&rule, depth, from, frame);
	rule.cfa_offset = (int32_t)depth + 8;
	if (way == GO_WAY_FRAME && depth >= 8) { /* less: in the epilogue, on its own stack */
		rule.cfa_register = UNWIND_REGISTER_FP;
		rule.cfa_offset = 16;
		rule.flags |= UNWIND_RULE_OTHER_STACK;
		rule.fp = UNWIND_FP_AT_CFA;
		rule.fp_offset = -16;
	} else if (way == GO_WAY_SWITCH || way == GO_WAY_SAVED) {
		if (depth > INT16_MAX - 8)
			return (struct unwind_rule){.cfa = UNWIND_CFA_NONE};
		rule.cfa = way == GO_WAY_SWITCH ? UNWIND_CFA_GO_SWITCH : UNWIND_CFA_DEREF;
		rule.cfa_offset = part->offset;
		rule.flags |= UNWIND_RULE_OTHER_STACK;
		rule.cfa_add = (int16_t)(depth + 8);
	}
	return rule;
}

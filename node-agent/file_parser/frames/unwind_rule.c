/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/frames/unwind_rule.h"

/* Offsets in the kernel's struct ucontext, arch/x86/include/uapi/asm/sigcontext.h. */
enum { UCONTEXT_RBP = 120, UCONTEXT_RSP = 160, UCONTEXT_RIP = 168 };
/* arm64: a siginfo lies before the ucontext, arch/arm64/kernel/signal.c: struct rt_sigframe. */
enum { ARM64_UCONTEXT = 128 };
enum { X86_RETURN_OFFSET = -8 };

struct maker {
	const struct frame_state *state;
	const struct frame_registers *registers;
	struct unwind_rule rule;
};

static bool is_register(const struct frame_value *value, uint64_t base)
{
	return value->kind == FRAME_VALUE_REGISTER && value->base == base;
}

/* As the field has it, or false: it does not fit. */
static bool fits16(int64_t number, int16_t *field)
{
	*field = (int16_t)number;
	return *field == number;
}

static bool fits32(int64_t number, int32_t *field)
{
	*field = (int32_t)number;
	return *field == number;
}

static struct frame_value cfa_value(const struct frame_state *state)
{
	if (!state->has_cfa)
		return (struct frame_value){.kind = FRAME_VALUE_UNKNOWN};
	if (state->cfa_is_expression)
		return state->cfa_expression;
	return (struct frame_value){
		.kind = FRAME_VALUE_REGISTER,
		.base = state->cfa_register < FRAME_REGISTER_CFA ? (uint32_t)state->cfa_register
								 : FRAME_REGISTER_CFA,
		.offset = state->cfa_offset,
	};
}

/* The x86-64 C libraries' return from a signal handler: every register is where the kernel put it.
 */
static bool make_signal(struct maker *maker, const struct frame_value *cfa)
{
	const struct frame_state *state = maker->state;
	const struct frame_saved *fp = &state->saved[FRAME_FP], *from = &state->saved[FRAME_RETURN];
	uint64_t sp = maker->registers->number[FRAME_SP];
	int64_t context = cfa->offset;

	if (maker->registers->is_arm64) {
		/* Its vDSO names only the frame record, which is the interrupted code's caller's.
		 */
		if (!is_register(cfa, maker->registers->number[FRAME_FP]) || context ||
		    !is_register(&fp->value, FRAME_REGISTER_CFA) || fp->value.offset ||
		    !is_register(&from->value, FRAME_REGISTER_CFA) || from->value.offset != 8)
			return false;
		context = ARM64_UCONTEXT;
	} else {
		context -= UCONTEXT_RSP;
		if (cfa->kind != FRAME_VALUE_DEREF || cfa->base != sp || cfa->add ||
		    !is_register(&fp->value, sp) || !is_register(&from->value, sp) ||
		    fp->value.offset != context + UCONTEXT_RBP ||
		    from->value.offset != context + UCONTEXT_RIP)
			return false;
	}
	if (fp->kind != FRAME_SAVED_AT || from->kind != FRAME_SAVED_AT ||
	    !fits32(context, &maker->rule.cfa_offset))
		return false;
	maker->rule.cfa = UNWIND_CFA_SIGNAL;
	maker->rule.fp = UNWIND_FP_UNDEFINED;
	return true;
}

static bool make_cfa(struct maker *maker, const struct frame_value *cfa)
{
	struct unwind_rule *rule = &maker->rule;

	if (cfa->kind == FRAME_VALUE_PLT && !maker->registers->is_arm64)
		rule->cfa = UNWIND_CFA_PLT;
	else if (cfa->kind == FRAME_VALUE_REGISTER)
		rule->cfa = UNWIND_CFA_REGISTER;
	else if (cfa->kind == FRAME_VALUE_DEREF)
		rule->cfa = UNWIND_CFA_DEREF;
	else
		return false;
	if (cfa->base >= maker->registers->count || !fits16(cfa->add, &rule->cfa_add))
		return false;
	if (rule->cfa != UNWIND_CFA_PLT)
		rule->cfa_register = (uint8_t)cfa->base;
	return fits32(cfa->offset, &rule->cfa_offset);
}

/* What is saved where, from the CFA. False: it cannot be told. */
static bool from_cfa(const struct frame_saved *saved, const struct frame_value *cfa,
		     int64_t *offset)
{
	const struct frame_value *value = &saved->value;
	bool is_place = saved->kind == FRAME_SAVED_AT && value->kind == FRAME_VALUE_REGISTER;

	/* *(x) itself is what is saved at x */
	if (saved->kind == FRAME_IS && value->kind == FRAME_VALUE_DEREF && !value->add)
		is_place = true;
	if (!is_place)
		return false;
	if (value->base == FRAME_REGISTER_CFA) {
		*offset = value->offset;
		return true;
	}
	return cfa->kind == FRAME_VALUE_REGISTER && cfa->base == value->base &&
	       !__builtin_sub_overflow(value->offset, cfa->offset, offset);
}

static bool make_return(struct maker *maker, const struct frame_value *cfa)
{
	const struct frame_saved *from = &maker->state->saved[FRAME_RETURN];
	const struct frame_registers *registers = maker->registers;
	int64_t offset;

	if (registers->is_arm64 && (from->kind == FRAME_UNSPECIFIED || from->kind == FRAME_SAME)) {
		maker->rule.ra = UNWIND_RA_IN_REGISTER;
		maker->rule.ra_offset = (int16_t)registers->number[FRAME_RETURN];
		return true;
	}
	if (from->kind == FRAME_IS && from->value.kind == FRAME_VALUE_REGISTER &&
	    from->value.base < registers->count && !from->value.offset) {
		maker->rule.ra = UNWIND_RA_IN_REGISTER;
		maker->rule.ra_offset = (int16_t)from->value.base;
		return true;
	}
	maker->rule.ra = UNWIND_RA_AT_CFA;
	return from_cfa(from, cfa, &offset) && fits16(offset, &maker->rule.ra_offset) &&
	       (registers->is_arm64 || offset == X86_RETURN_OFFSET);
}

static void make_fp(struct maker *maker, const struct frame_value *cfa)
{
	const struct frame_saved *fp = &maker->state->saved[FRAME_FP];
	struct unwind_rule *rule = &maker->rule;
	int64_t offset;

	rule->fp = UNWIND_FP_UNDEFINED;
	if (fp->kind == FRAME_UNSPECIFIED || fp->kind == FRAME_SAME)
		rule->fp = UNWIND_FP_SAME;
	else if (from_cfa(fp, cfa, &offset) && fits16(offset, &rule->fp_offset))
		rule->fp = UNWIND_FP_AT_CFA;
	else if (fp->kind == FRAME_SAVED_AT &&
		 is_register(&fp->value, maker->registers->number[FRAME_FP]) &&
		 fits16(fp->value.offset, &rule->fp_offset))
		rule->fp = UNWIND_FP_AT_FP;
	else
		rule->fp_offset = 0;
}

static void make_kept(struct maker *maker, const struct frame_value *cfa)
{
	const struct frame_saved *kept = &maker->state->saved[FRAME_KEPT];
	int64_t offset;

	maker->rule.kept = UNWIND_KEPT_UNDEFINED;
	if (kept->kind == FRAME_UNSPECIFIED || kept->kind == FRAME_SAME)
		maker->rule.kept = UNWIND_KEPT_SAME;
	else if (from_cfa(kept, cfa, &offset) && offset < 0 && offset % 8 == 0 &&
		 offset > -8 * UNWIND_KEPT_UNDEFINED)
		maker->rule.kept = (uint8_t)(-offset / 8);
}

/* The caller's stack pointer is the CFA, unless it is said to be something else. */
static bool is_sp_the_cfa(const struct frame_saved *sp)
{
	return sp->kind == FRAME_UNSPECIFIED ||
	       (sp->kind == FRAME_IS && is_register(&sp->value, FRAME_REGISTER_CFA) &&
		!sp->value.offset);
}

struct unwind_rule unwind_rule_of(const struct frame_state *state,
				  const struct frame_registers *registers, bool is_signal)
{
	const struct unwind_rule none = {.cfa = UNWIND_CFA_NONE}, end = {.cfa = UNWIND_CFA_END};
	struct maker maker = {.state = state, .registers = registers};
	struct frame_value cfa = cfa_value(state);

	if (state->saved[FRAME_RETURN].kind == FRAME_UNDEFINED)
		return end;
	if (is_signal)
		maker.rule.flags = UNWIND_RULE_SIGNAL;
	if (is_signal && make_signal(&maker, &cfa))
		return maker.rule;
	if (!is_sp_the_cfa(&state->saved[FRAME_SP]) || !make_cfa(&maker, &cfa) ||
	    !make_return(&maker, &cfa))
		return none;
	make_fp(&maker, &cfa);
	make_kept(&maker, &cfa);
	if (state->is_landing) { /* all registers are the handler's already */
		maker.rule.flags |= UNWIND_RULE_SIGNAL;
		maker.rule.kept = UNWIND_KEPT_SAME;
	}
	return maker.rule;
}

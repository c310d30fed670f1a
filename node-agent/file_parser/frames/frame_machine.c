/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/frames/frame_machine.h"

#include <elf.h>

enum {
	REMEMBERED_MAX = 16,
	INSTRUCTIONS_MAX = 64 << 10, /* of one FDE */
	RESULT_REGISTER = 0,
	X86_LANDING_REGISTER = 2, /* rcx: GCC's EH_RETURN_STACKADJ_RTX */
};

/* DWARF 5, 7.24; from 0x1c on those of vendors. */
enum {
	CFA_ADVANCE = 0x40, /* | distance */
	CFA_OFFSET = 0x80,  /* | register */
	CFA_RESTORE = 0xc0, /* | register */
	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE1 = 0x02,
	CFA_ADVANCE2 = 0x03,
	CFA_ADVANCE4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER_STATE = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_ADVANCE8 = 0x1d,
	CFA_ARM64_RA_STATE_WITH_PC = 0x2c,
	CFA_ARM64_RA_STATE = 0x2d,
	CFA_ARGS_SIZE = 0x2e,
	CFA_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

struct machine {
	const struct frame_common *common;
	const struct frame_registers *registers;
	struct frame_state now, initial, remembered[REMEMBERED_MAX];
	unsigned depth;
	uint64_t at, next; /* the state holds from here; a row begins there when it is greater */
	bool bad;
};

bool frame_registers_of(uint16_t elf_machine, struct frame_registers *registers)
{
	switch (elf_machine) {
	case EM_X86_64:
		*registers = (struct frame_registers){{6, 7, 16, 3}, 16, false};
		return true;
	case EM_AARCH64:
		*registers = (struct frame_registers){{29, 31, 30, 19}, 32, true};
		return true;
	}
	return false;
}

/* Offsets are a stranger's: they wrap around and do not fit a rule later. */
static int64_t scaled(int64_t number, int64_t factor)
{
	return (int64_t)((uint64_t)number * (uint64_t)factor);
}

static void set_saved(struct machine *machine, uint64_t number, struct frame_saved saved)
{
	if (number == RESULT_REGISTER && saved.kind == FRAME_SAVED_AT)
		machine->now.is_result_saved = true;
	for (int i = 0; i < FRAME_FOLLOWED; i++)
		if (machine->registers->number[i] == number)
			machine->now.saved[i] = saved;
}

static void restore(struct machine *machine, uint64_t number)
{
	for (int i = 0; i < FRAME_FOLLOWED; i++)
		if (machine->registers->number[i] == number)
			machine->now.saved[i] = machine->initial.saved[i];
}

static void set_from_cfa(struct machine *machine, uint64_t number, int kind, int64_t offset)
{
	set_saved(machine, number,
		  (struct frame_saved){kind,
				       {.kind = FRAME_VALUE_REGISTER,
					.base = FRAME_REGISTER_CFA,
					.offset = offset}});
}

static void set_from_register(struct machine *machine, uint64_t number, uint64_t other)
{
	struct frame_saved saved = {FRAME_IS, {.kind = FRAME_VALUE_UNKNOWN}};

	if (number == other)
		saved.kind = FRAME_SAME;
	else if (other < machine->registers->count)
		saved.value = (struct frame_value){.kind = FRAME_VALUE_REGISTER,
						   .base = (uint32_t)other};
	set_saved(machine, number, saved);
}

static void set_from_expression(struct machine *machine, uint64_t number, int kind,
				struct frame_bytes *rest)
{
	static const struct frame_value cfa = {.kind = FRAME_VALUE_REGISTER,
					       .base = FRAME_REGISTER_CFA};
	struct frame_bytes expression = frame_part(rest, frame_number(rest));

	if (!rest->bad)
		set_saved(machine, number,
			  (struct frame_saved){kind, frame_expression_value(expression, &cfa)});
}

static void set_cfa(struct machine *machine, uint64_t number, int64_t offset)
{
	machine->now.has_cfa = true;
	machine->now.cfa_is_expression = false;
	machine->now.cfa_register = number;
	machine->now.cfa_offset = offset;
	if (number == machine->registers->number[FRAME_FP])
		machine->now.is_landing = false;
	else if (number == X86_LANDING_REGISTER && !machine->registers->is_arm64)
		machine->now.is_landing = machine->now.is_result_saved;
}

/* The ones about one register. False: it is none of them. */
static bool run_register(struct machine *machine, uint8_t code, struct frame_bytes *rest)
{
	int64_t factor = machine->common->data_factor;
	uint64_t number = frame_number(rest);

	switch (code) {
	case CFA_OFFSET_EXTENDED:
		set_from_cfa(machine, number, FRAME_SAVED_AT,
			     scaled((int64_t)frame_number(rest), factor));
		return true;
	case CFA_OFFSET_EXTENDED_SF:
		set_from_cfa(machine, number, FRAME_SAVED_AT,
			     scaled(frame_number_signed(rest), factor));
		return true;
	case CFA_NEGATIVE_OFFSET_EXTENDED:
		set_from_cfa(machine, number, FRAME_SAVED_AT,
			     scaled(scaled((int64_t)frame_number(rest), factor), -1));
		return true;
	case CFA_VAL_OFFSET:
		set_from_cfa(machine, number, FRAME_IS,
			     scaled((int64_t)frame_number(rest), factor));
		return true;
	case CFA_VAL_OFFSET_SF:
		set_from_cfa(machine, number, FRAME_IS, scaled(frame_number_signed(rest), factor));
		return true;
	case CFA_RESTORE_EXTENDED:
		restore(machine, number);
		return true;
	case CFA_UNDEFINED:
		set_saved(machine, number, (struct frame_saved){.kind = FRAME_UNDEFINED});
		return true;
	case CFA_SAME_VALUE:
		set_saved(machine, number, (struct frame_saved){.kind = FRAME_SAME});
		return true;
	case CFA_REGISTER:
		set_from_register(machine, number, frame_number(rest));
		return true;
	case CFA_EXPRESSION:
		set_from_expression(machine, number, FRAME_SAVED_AT, rest);
		return true;
	case CFA_VAL_EXPRESSION:
		set_from_expression(machine, number, FRAME_IS, rest);
		return true;
	}
	return false;
}

/* The ones about the CFA. False: it is none of them. */
static bool run_cfa(struct machine *machine, uint8_t code, struct frame_bytes *rest)
{
	int64_t factor = machine->common->data_factor;
	struct frame_state *now = &machine->now;
	struct frame_bytes expression;
	uint64_t number;

	switch (code) {
	case CFA_DEF_CFA:
		number = frame_number(rest);
		set_cfa(machine, number, (int64_t)frame_number(rest));
		return true;
	case CFA_DEF_CFA_SF:
		number = frame_number(rest);
		set_cfa(machine, number, scaled(frame_number_signed(rest), factor));
		return true;
	case CFA_DEF_CFA_REGISTER:
		set_cfa(machine, frame_number(rest), now->cfa_offset);
		return true;
	case CFA_DEF_CFA_OFFSET:
		now->cfa_offset = (int64_t)frame_number(rest);
		return true;
	case CFA_DEF_CFA_OFFSET_SF:
		now->cfa_offset = scaled(frame_number_signed(rest), factor);
		return true;
	case CFA_DEF_CFA_EXPRESSION:
		expression = frame_part(rest, frame_number(rest));
		now->has_cfa = now->cfa_is_expression = true;
		now->cfa_expression = frame_expression_value(expression, NULL);
		return true;
	case CFA_REMEMBER_STATE:
		if (machine->depth == REMEMBERED_MAX)
			machine->bad = true;
		else
			machine->remembered[machine->depth++] = *now;
		return true;
	case CFA_RESTORE_STATE:
		if (!machine->depth)
			machine->bad = true;
		else
			*now = machine->remembered[--machine->depth];
		return true;
	}
	return false;
}

static void advance(struct machine *machine, uint64_t distance)
{
	uint64_t step;

	if (__builtin_mul_overflow(distance, machine->common->code_factor, &step) ||
	    __builtin_add_overflow(machine->at, step, &machine->next))
		machine->bad = true;
}

/* The ones that go on in the code. False: it is none of them. */
static bool run_advance(struct machine *machine, uint8_t code, struct frame_bytes *rest)
{
	switch (code) {
	case CFA_ADVANCE1:
	case CFA_ADVANCE2:
	case CFA_ADVANCE4:
		advance(machine, frame_fixed(rest, (size_t)1 << (code - CFA_ADVANCE1)));
		return true;
	case CFA_ADVANCE8:
		advance(machine, frame_fixed(rest, 8));
		return true;
	case CFA_SET_LOC:
		if (!frame_pointer_read(rest, machine->common->encoding, &machine->next) ||
		    machine->next < machine->at)
			machine->bad = true;
		return true;
	}
	return false;
}

static void run_one(struct machine *machine, struct frame_bytes *rest)
{
	uint8_t code = (uint8_t)frame_fixed(rest, 1), low = code & 0x3f;

	switch (code & 0xc0) {
	case CFA_ADVANCE:
		advance(machine, low);
		return;
	case CFA_OFFSET:
		set_from_cfa(machine, low, FRAME_SAVED_AT,
			     scaled((int64_t)frame_number(rest), machine->common->data_factor));
		return;
	case CFA_RESTORE:
		restore(machine, low);
		return;
	}
	if (code == CFA_NOP || run_advance(machine, code, rest) || run_cfa(machine, code, rest))
		return;
	/* Signed return addresses: whoever reads one takes the signature off. */
	if (machine->registers->is_arm64 &&
	    (code == CFA_ARM64_RA_STATE || code == CFA_ARM64_RA_STATE_WITH_PC))
		return;
	if (code == CFA_ARGS_SIZE)
		frame_number(rest);
	else if (!run_register(machine, code, rest))
		machine->bad = true;
}

/* Runs all of it, or up to what begins at limit; add, where there is one, is given the states. */
static enum frame_run run(struct machine *machine, struct frame_bytes rest, uint64_t end,
			  frame_state_add add, void *context, uint64_t *budget)
{
	for (int i = 0; rest.at < rest.end; i++) {
		if (i == INSTRUCTIONS_MAX)
			return FRAME_RUN_DAMAGED;
		if (!*budget)
			return FRAME_RUN_OVER_BUDGET;
		--*budget;
		machine->next = machine->at;
		run_one(machine, &rest);
		if (rest.bad || machine->bad)
			return FRAME_RUN_DAMAGED;
		if (machine->next >= end)
			break;
		if (machine->next == machine->at)
			continue;
		if (add && !add(context, machine->at, machine->next, &machine->now))
			return FRAME_RUN_STOPPED;
		machine->at = machine->next;
	}
	if (add && machine->at < end && !add(context, machine->at, end, &machine->now))
		return FRAME_RUN_STOPPED;
	return FRAME_RUN_DONE;
}

enum frame_run frame_machine_run(const struct frame_entry *entry,
				 const struct frame_registers *registers, uint64_t limit,
				 frame_state_add add, void *context, uint64_t *budget)
{
	uint64_t end = entry->end < limit ? entry->end : limit;
	struct machine machine;
	enum frame_run done;

	machine.common = entry->common;
	machine.registers = registers;
	memset(&machine.now, 0, sizeof machine.now);
	memset(&machine.initial, 0, sizeof machine.initial);
	machine.depth = 0;
	machine.at = entry->start;
	machine.bad = entry->common->return_register != registers->number[FRAME_RETURN];
	if (machine.bad)
		return FRAME_RUN_DAMAGED;
	done = run(&machine, entry->common->instructions, UINT64_MAX, NULL, NULL, budget);
	if (done != FRAME_RUN_DONE || machine.at != entry->start || machine.depth)
		return done == FRAME_RUN_OVER_BUDGET ? done : FRAME_RUN_DAMAGED;
	machine.initial = machine.now;
	return run(&machine, entry->instructions, end, add, context, budget);
}

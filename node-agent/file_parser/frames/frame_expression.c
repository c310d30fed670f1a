/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/frames/frame_expression.h"

enum { STACK_VALUES = 8, OPERATIONS_MAX = 64 };

/* DWARF 5, 7.7.1 */
enum {
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08, /* 1u 1s 2u 2s 4u 4s 8u 8s */
	OP_CONST8S = 0x0f,
	OP_CONSTU = 0x10,
	OP_CONSTS = 0x11,
	OP_DUP = 0x12,
	OP_DROP = 0x13,
	OP_AND = 0x1a,
	OP_MINUS = 0x1c,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_GE = 0x2a,
	OP_LIT0 = 0x30,
	OP_LIT31 = 0x4f,
	OP_BREG0 = 0x70,
	OP_BREG31 = 0x8f,
	OP_BREGX = 0x92,
	OP_NOP = 0x96,
};

struct stack {
	struct frame_value values[STACK_VALUES];
	unsigned depth;
	bool bad;
};

static const struct frame_value unknown = {.kind = FRAME_VALUE_UNKNOWN};

static void push(struct stack *stack, struct frame_value value)
{
	if (stack->depth == STACK_VALUES)
		stack->bad = true;
	else
		stack->values[stack->depth++] = value;
}

static struct frame_value pop(struct stack *stack)
{
	if (stack->depth)
		return stack->values[--stack->depth];
	stack->bad = true;
	return unknown;
}

static struct frame_value constant(int64_t number)
{
	return (struct frame_value){.kind = FRAME_VALUE_CONSTANT, .offset = number};
}

static struct frame_value based(uint64_t base, int64_t offset)
{
	if (base >= FRAME_REGISTER_CFA)
		return unknown;
	return (struct frame_value){
		.kind = FRAME_VALUE_REGISTER, .base = (uint32_t)base, .offset = offset};
}

static int64_t wrapping_sum(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static struct frame_value sum(struct frame_value a, struct frame_value b)
{
	if (a.kind == FRAME_VALUE_CONSTANT) {
		struct frame_value other = a;

		a = b;
		b = other;
	}
	if (b.kind != FRAME_VALUE_CONSTANT)
		return unknown;
	if (a.kind == FRAME_VALUE_DEREF)
		a.add = wrapping_sum(a.add, b.offset);
	else if (a.kind == FRAME_VALUE_REGISTER || a.kind == FRAME_VALUE_CONSTANT)
		a.offset = wrapping_sum(a.offset, b.offset);
	else
		return unknown;
	return a;
}

static void dereference(struct stack *stack)
{
	struct frame_value value = pop(stack);

	if (value.kind == FRAME_VALUE_REGISTER)
		value.kind = FRAME_VALUE_DEREF;
	else
		value = unknown;
	push(stack, value);
}

static void run_sum(struct stack *stack, uint8_t operation)
{
	struct frame_value second = pop(stack), first = pop(stack);

	if (operation == OP_MINUS && second.kind == FRAME_VALUE_CONSTANT)
		second.offset = (int64_t)(0 - (uint64_t)second.offset);
	else if (operation == OP_MINUS)
		second = unknown;
	push(stack, sum(first, second));
}

static void run_constant(struct stack *stack, uint8_t operation, struct frame_bytes *rest)
{
	size_t length = (size_t)1 << ((operation - OP_CONST1U) / 2);

	push(stack, constant((operation - OP_CONST1U) & 1 ? frame_fixed_signed(rest, length)
							  : (int64_t)frame_fixed(rest, length)));
}

/* False: an operation that we do not follow. */
static bool run_one(struct stack *stack, struct frame_bytes *rest)
{
	uint8_t operation = (uint8_t)frame_fixed(rest, 1);
	uint64_t number;

	if (operation >= OP_LIT0 && operation <= OP_LIT31) {
		push(stack, constant(operation - OP_LIT0));
		return true;
	}
	if (operation >= OP_BREG0 && operation <= OP_BREG31) {
		push(stack, based(operation - OP_BREG0, frame_number_signed(rest)));
		return true;
	}
	if (operation >= OP_CONST1U && operation <= OP_CONST8S) {
		run_constant(stack, operation, rest);
		return true;
	}
	switch (operation) {
	case OP_NOP:
		return true;
	case OP_DEREF:
		dereference(stack);
		return true;
	case OP_CONSTU:
		push(stack, constant((int64_t)frame_number(rest)));
		return true;
	case OP_CONSTS:
		push(stack, constant(frame_number_signed(rest)));
		return true;
	case OP_DUP:
		push(stack, pop(stack));
		if (stack->depth)
			push(stack, stack->values[stack->depth - 1]);
		return true;
	case OP_DROP:
		pop(stack);
		return true;
	case OP_PLUS:
	case OP_MINUS:
		run_sum(stack, operation);
		return true;
	case OP_PLUS_UCONST:
		push(stack, sum(pop(stack), constant((int64_t)frame_number(rest))));
		return true;
	case OP_BREGX:
		number = frame_number(rest);
		push(stack, based(number, frame_number_signed(rest)));
		return true;
	}
	return false;
}

/* rsp + 8 + ((rip & 15) >= n) * 8, as linkers write it for a procedure linkage table. */
static bool is_plt(struct frame_bytes expression, struct frame_value *value)
{
	static const uint8_t before[] = {OP_BREG0 + 7, 8, OP_BREG0 + 16, 0, OP_LIT0 + 15, OP_AND},
			     after[] = {OP_GE, OP_LIT0 + 3, OP_SHL, OP_PLUS};
	const uint8_t *at = expression.at;

	if (frame_left(&expression) != sizeof before + 1 + sizeof after ||
	    memcmp(at, before, sizeof before) != 0 ||
	    memcmp(at + sizeof before + 1, after, sizeof after) != 0 ||
	    at[sizeof before] < OP_LIT0 || at[sizeof before] > OP_LIT0 + 15)
		return false;
	*value = (struct frame_value){.kind = FRAME_VALUE_PLT,
				      .offset = at[sizeof before] - OP_LIT0};
	return true;
}

struct frame_value frame_expression_value(struct frame_bytes expression,
					  const struct frame_value *initial)
{
	struct stack stack = {.depth = 0};
	struct frame_value value;

	if (is_plt(expression, &value))
		return value;
	if (initial)
		push(&stack, *initial);
	for (int i = 0; expression.at < expression.end; i++)
		if (i == OPERATIONS_MAX || !run_one(&stack, &expression))
			return unknown;
	value = pop(&stack);
	return stack.bad || expression.bad ? unknown : value;
}

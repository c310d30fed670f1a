/* SPDX-License-Identifier: Apache-2.0 */
/* The profile's fields, one a line; go tool pprof and protoc have their say in
 * tests/system/formats_test.py. */
#include "symbol-server/formats/pprof.h"

#include <string.h>

#include "common/gzip.h"
#include "tests/check.h"

static const struct flame_module modules[] = {
	{"unused", "00"}, {"libc.so.6", "abcd"}, {"app", "ef"}, {"vmlinux", ""}};
static struct accounting accounting = {.value = 70, .samples = 7, .hosts = 1};
static const struct flame_answer answer = {.type = "on-cpu",
					   .unit = "nanoseconds",
					   .match = "{a=\"b\"}",
					   .from_ms = 60000,
					   .until_ms = 120000,
					   .modules = modules,
					   .module_count = 4,
					   .accounting = &accounting};

/* "field=number" or "field=[…]"; depth: how many levels of messages are looked into. */
static void print_message(const uint8_t *at, const uint8_t *end, int depth, struct buffer *out)
{
	while (at < end) {
		uint64_t key, value;

		if (!varint_read(&at, end, &key) || !varint_read(&at, end, &value)) {
			buffer_append_text(out, "damaged");
			return;
		}
		if (out->length && out->bytes[out->length - 1] != '[')
			buffer_append_char(out, depth == 2 ? '\n' : ' ');
		if ((key & 7) == 0) {
			buffer_printf(out, "%d=%llu", (int)(key >> 3), (unsigned long long)value);
			continue;
		}
		buffer_printf(out, "%d=[", (int)(key >> 3));
		if (depth == 2 && key >> 3 == 6)
			buffer_append(out, at, value);
		else if (depth && !(depth == 1 && (key >> 3 == 1 || key >> 3 == 2)))
			print_message(at, at + value, depth - 1, out);
		else
			for (uint64_t i = 0; i < value; i++)
				buffer_printf(out, "%s%u", i ? "," : "", at[i]);
		buffer_append_char(out, ']');
		at += value;
	}
}

static void check_profile(const struct buffer *packed, const char *want)
{
	struct buffer plain, text;

	buffer_init(&plain, 1 << 20);
	buffer_init(&text, 1 << 20);
	CHECK(gzip_inflate(packed->bytes, packed->length, &plain, NULL));
	print_message(plain.bytes, plain.bytes + plain.length, 2, &text);
	buffer_append_char(&text, 0);
	CHECK_TEXT((const char *)text.bytes, want);
	buffer_release(&plain);
	buffer_release(&text);
}

static uint32_t add(struct pprof *pprof, uint64_t address, uint32_t module,
		    const struct flame_frame *const *frames, unsigned count)
{
	struct pprof_location location = {
		.address = address, .module = module, .frames = frames, .count = count};

	return pprof_add_location(pprof, &location);
}

/* A reader has values and numbers of samples: it can make ± of any sum. */
static void test_error(void)
{
	struct buffer out = {.limit = 1 << 20}, plain = {.limit = 1 << 20};
	struct accounting sampled = {
		.value = 70, .samples = 7, .is_sampled = true, .error = 40, .sampled = {0.5, 3}};
	static const char want[] =
		"70 B ± 40 B; of a value v of n samples ± 1.96 v √(6.00 / (n + 0.50)), 95 %";
	struct flame_answer of_own = answer;
	struct pprof *pprof;

	of_own.accounting = &sampled;
	of_own.unit = "bytes";
	pprof = pprof_new(&of_own, NULL, 0, &out);
	CHECK(pprof_finish(pprof) && gzip_inflate(out.bytes, out.length, &plain, NULL));
	buffer_append_char(&plain, 0);
	CHECK(memmem(plain.bytes, plain.length, want, strlen(want)));
	buffer_release(&plain);
	buffer_release(&out);
	pprof_free(pprof);
}

static void test_profile(void)
{
	static const char *const labels[] = {"process"}, *const one[] = {"p"}, *const two[] = {"q"};
	static const struct flame_frame read = {
		.name = "read", .file = "", .module = 1, .kind = FRAME_native};
	static const struct flame_frame inner = {
		.name = "inner", .file = "a.c", .line = 9, .module = 2, .kind = FRAME_inline};
	static const struct flame_frame outer = {
		.name = "outer", .file = "a.c", .line = 20, .module = 2, .kind = FRAME_native};
	static const struct flame_frame anonymous = {
		.name = "[anon]", .file = "", .module = FRAME_NO_MODULE, .kind = FRAME_unresolved};
	const struct flame_frame *const library[] = {&read}, *const chain[] = {&inner, &outer},
					*const alone[] = {&outer}, *const nowhere[] = {&anonymous};
	struct buffer out = {.limit = 1 << 20};
	struct pprof *pprof = pprof_new(&answer, labels, 1, &out);
	uint32_t stack[3], other[2];

	stack[0] = add(pprof, 0x2000, 1, library, 1);
	stack[1] = add(pprof, 0x10, 2, chain, 2);
	stack[2] = add(pprof, 0x20, 2, alone, 1);
	other[0] = add(pprof, UINT64_MAX, FRAME_NO_MODULE, nowhere, 1);
	other[1] = stack[2];
	CHECK(pprof_add_sample(pprof, stack, 3, one, 10, 1));
	CHECK(pprof_add_sample(pprof, other, 2, one, 20, 2));
	CHECK(pprof_add_sample(pprof, stack, 3, two, 5, 1));
	CHECK(pprof_add_sample(pprof, stack, 3, one, 30, 2)); /* the first one again */
	CHECK(pprof_add_sample(pprof, stack, 0, one, 5, 1));
	CHECK(pprof_finish(pprof));
	check_profile(
		&out,
		"6=[]\n6=[read]\n5=[1=1 2=1]\n4=[1=1 2=1 3=8192 4=[1=1]]\n"
		"6=[inner]\n6=[a.c]\n5=[1=2 2=2 4=3]\n6=[outer]\n5=[1=3 2=4 4=3]\n"
		"4=[1=2 2=2 3=16 4=[1=2 2=9] 4=[1=3 2=20]]\n4=[1=3 2=2 3=32 4=[1=3 2=20]]\n"
		"6=[[anon]]\n5=[1=4 2=5]\n4=[1=4 3=18446744073709551615 4=[1=4]]\n"
		"6=[p]\n6=[q]\n"
		"6=[samples]\n6=[count]\n1=[1=8 2=9]\n6=[on-cpu]\n6=[nanoseconds]\n1=[1=10 2=11]\n"
		"11=[1=10 2=11]\n9=60000000000\n10=60000000000\n12=10\n14=10\n"
		"6=[farflame: on-cpu match={a=\"b\"}]\n13=12\n"
		"6=[7 samples; lost 0 of 0 taken; 0 incomplete, 0 unsymbolized]\n13=13\n"
		"6=[app]\n6=[ef]\n3=[1=2 3=4096 5=14 6=15 7=1 8=1 9=1 10=1]\n"
		"6=[libc.so.6]\n6=[abcd]\n3=[1=1 3=12288 5=16 6=17 7=1]\n6=[process]\n"
		"2=[1=[1,2,3] 2=[3,40] 3=[1=18 2=6]]\n2=[1=[4,3] 2=[2,20] 3=[1=18 2=6]]\n"
		"2=[1=[1,2,3] 2=[1,5] 3=[1=18 2=7]]\n2=[2=[1,5] 3=[1=18 2=6]]");
	buffer_release(&out);
	pprof_free(pprof);
}

/* Overloads are functions of their own: equal names, the signature as system_name. */
static void test_overloads(void)
{
	static const struct flame_frame one = {
		.name = "f", .signature = "f(int)", .file = "", .module = 2};
	static const struct flame_frame two = {
		.name = "f", .signature = "f(long)", .file = "", .module = 2};
	const struct flame_frame *const first[] = {&one}, *const second[] = {&two};
	struct buffer out = {.limit = 1 << 20}, plain;
	struct pprof *pprof = pprof_new(&answer, NULL, 0, &out);

	add(pprof, 0x10, 2, first, 1);
	add(pprof, 0x20, 2, second, 1);
	add(pprof, 0x30, 2, first, 1);
	CHECK(pprof_finish(pprof));
	buffer_init(&plain, 1 << 20);
	CHECK(gzip_inflate(out.bytes, out.length, &plain, NULL));
	CHECK(memmem(plain.bytes, plain.length, "\x2a\6\x08\1\x10\1\x18\2", 8));
	CHECK(memmem(plain.bytes, plain.length, "\x2a\6\x08\2\x10\1\x18\3", 8));
	CHECK(!memmem(plain.bytes, plain.length, "\x2a\6\x08\3", 4));
	buffer_release(&plain);
	buffer_release(&out);
	pprof_free(pprof);
}

static bool comes_before(const struct buffer *plain, const char *one, const char *other)
{
	const char *first = memmem(plain->bytes, plain->length, one, strlen(one));
	const char *second = memmem(plain->bytes, plain->length, other, strlen(other));

	return first && second && first < second;
}

/* The first mapping names the profile: the program of the processes with most, not whatever runs
 * from memory or is met first. */
static void test_main_program(void)
{
	static const struct flame_module own[] = {{"memfd:sealed-agent", "01"},
						  {"small", "02"},
						  {"libc.so.6", "03"},
						  {"large", "04"}};
	static const struct flame_frame frames[] = {
		{.name = "m", .file = "", .module = 0, .kind = FRAME_native},
		{.name = "s", .file = "", .module = 1, .kind = FRAME_native},
		{.name = "l", .file = "", .module = 2, .kind = FRAME_native},
		{.name = "g", .file = "", .module = 3, .kind = FRAME_native}};
	struct flame_answer of_own = answer;
	struct buffer out = {.limit = 1 << 20}, plain = {.limit = 1 << 20};
	struct pprof *pprof;
	uint32_t at[4], stack[2];

	of_own.modules = own;
	pprof = pprof_new(&of_own, NULL, 0, &out);
	for (uint32_t i = 0; i < 4; i++) {
		const struct flame_frame *const chain[] = {&frames[i]};

		at[i] = add(pprof, 0x1000 + i, i, chain, 1);
	}
	stack[0] = at[2];
	stack[1] = at[3];
	CHECK(pprof_add_sample(pprof, &at[0], 1, NULL, 90, 9));
	CHECK(pprof_add_sample(pprof, &at[1], 1, NULL, 20, 2));
	CHECK(pprof_add_sample(pprof, stack, 2, NULL, 30, 3));
	CHECK(pprof_finish(pprof));
	CHECK(gzip_inflate(out.bytes, out.length, &plain, NULL));
	CHECK(comes_before(&plain, "large", "memfd:sealed-agent") &&
	      comes_before(&plain, "large", "small"));
	buffer_release(&plain);
	buffer_release(&out);
	pprof_free(pprof);
}

/* Nothing in, nothing but its head out; and an answer that does not fit is none. */
static void test_ends(void)
{
	struct buffer out = {.limit = 1 << 20}, tight = {.limit = 20};
	struct pprof *pprof = pprof_new(&answer, NULL, 0, &out);

	CHECK(pprof_finish(pprof) && out.length > 50);
	buffer_release(&out);
	pprof_free(pprof);
	pprof = pprof_new(&answer, NULL, 0, &tight);
	CHECK(!pprof_finish(pprof));
	buffer_release(&tight);
	pprof_free(pprof);
	pprof_free(NULL);
}

/* Values beyond what the format's int64 holds stop there. */
static void test_large(void)
{
	static const struct flame_frame frame = {
		.name = "f", .file = NULL, .module = 99, .kind = FRAME_kernel, .is_kernel = true};
	const struct flame_frame *const frames[] = {&frame};
	struct buffer out = {.limit = 1 << 20}, plain = {.limit = 1 << 20};
	struct pprof *pprof = pprof_new(&answer, NULL, 0, &out);
	uint32_t at = add(pprof, 1, 99, frames, 1);

	CHECK(pprof_add_sample(pprof, &at, 1, NULL, UINT64_MAX, 1));
	CHECK(pprof_finish(pprof) && gzip_inflate(out.bytes, out.length, &plain, NULL));
	CHECK(plain.length > 9 &&
	      !memcmp(plain.bytes + plain.length - 9, "\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 9));
	buffer_release(&out);
	buffer_release(&plain);
	pprof_free(pprof);
}

int main(void)
{
	test_error();
	test_profile();
	test_overloads();
	test_main_program();
	test_ends();
	test_large();
	return checks_done();
}

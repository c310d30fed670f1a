/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks written as letters, leaf first; and made-up true ones, taken apart and joined again. */
#include "node-agent/runtimes/frame_merge.h"

#include <stdbool.h>
#include <stdlib.h>

#include "bpf/runtime_frames.h"
#include "tests/check.h"

/* native: a made at run time, o other file, r interpreter's file, L its loop.
 * list: p a frame, P one with an entry, G one of a generator, 0 an entry without frames; C U O W:
 * its end is not there (cut, unread, a loop, wrong), X: another interpreter's may follow, x a word
 * of no kind, 1 half a frame. merged: p, native as above, m and M marked ones (r and L).
 * s of any other file, which switches stacks; g before the native part: the thread waits for the
 * lock. */
static const struct row {
	const char *what, *native, *list, *merged;
	enum frame_merge_result result;
	bool is_cut; /* the native part */
} rows[] = {
	{"the leaf in the loop", "Lroo", "pP", "ppMmoo", MERGE_joined, false},
	{"Python → C → Python", "rLroLro", "PpP", "rpMmoppMmo", MERGE_joined, false},
	{"each frame its own loop (≤ 3.10)", "LrLrLro", "PPP", "pMmpMmpMmo", MERGE_joined, false},
	{"a generator resumed by C (3.11)", "LrrLro", "PpP", "pMmmppMmo", MERGE_joined, false},
	{"generators in the same loop (3.12)", "Lro", "pppP", "ppppMmo", MERGE_joined, false},
	{"the leaf in an extension", "ooLro", "pP", "ooppMmo", MERGE_joined, false},
	{"the leaf in libc, called by the interpreter", "orLro", "P", "orpMmo", MERGE_joined,
	 false},
	{"an embedding program", "oLroooo", "P", "opMmoooo", MERGE_joined, false},
	{"an exception of C++ between", "LrooorLrroo", "PP", "pMmooompMmmoo", MERGE_joined, false},
	{"the loop is being entered", "LrLro", "P", "LrpMmo", MERGE_joined, false},
	{"… or left, in its callee", "rLrLro", "P", "rLrpMmo", MERGE_joined, false},
	{"… but not by way of another file", "oLrLro", "P", "oLrLro", MERGE_differ, false},
	{"left, as the list says", "oLrLro", "0P", "oLrpMmo", MERGE_joined, false},
	{"a destructor of a frame that has returned", "LrLrLro", "P0P", "pMmMmpMmo", MERGE_joined,
	 false},
	{"the thread's own entry at the root", "LrLro", "PP0", "pMmpMmo", MERGE_joined, false},
	{"a list that is cut", "LrLrLro", "PpC", "pMmpMmMmo", MERGE_list_cut, false},
	{"… between two loops", "LrLro", "PC", "pMmMmo", MERGE_list_cut, false},
	{"a list that is not there", "Lro", "U", "Lro", MERGE_list_unread, false},
	{"… from its middle on", "LrLro", "pPU", "ppMmMmo", MERGE_list_unread, false},
	{"a list that leads into itself", "Lro", "ppO", "ppMmo", MERGE_list_wrong, false},
	{"a list that leads nowhere", "Lro", "ppW", "ppMmo", MERGE_list_wrong, false},
	{"a list without an end", "Lro", "p", "pMmo", MERGE_list_wrong, false},
	{"words of no kind", "Lro", "Px", "pMmo", MERGE_list_wrong, false},
	{"half a frame", "Lro", "1", "Lro", MERGE_list_wrong, false},
	{"a native part that is cut", "LrL", "PPP", "pMmpMp", MERGE_joined, true},
	{"… before any loop", "oo", "pPP", "ooppp", MERGE_joined, true},
	{"… at once", "", "pP", "pp", MERGE_joined, true},
	{"… while the loop is being entered", "LrL", "P", "LrpM", MERGE_joined, true},
	{"… with more loops than entries", "oLrL", "P", "oLrL", MERGE_differ, true},
	{"both are cut", "LrL", "PpC", "pMmpM", MERGE_list_cut, true},
	{"a thread without a list", "ooo", "", "ooo", MERGE_none, false},
	{"loops without a list", "oLro", "", "oLro", MERGE_no_list, false},
	{"more entries than loops", "Lro", "PP", "Lro", MERGE_differ, false},
	{"… of a list that is cut", "Lro", "PPC", "Lro", MERGE_differ, false},
	{"more loops than entries", "LrLrLro", "P", "LrLrLro", MERGE_differ, false},
	{"a list without any loop", "oo", "P", "oo", MERGE_differ, false},
	{"made code in the loop", "aLro", "pP", "appMmo", MERGE_joined, false},
	{"… from which the loop is passed over", "aro", "pP", "app", MERGE_guessed, false},
	{"… one loop of two", "raroLro", "PPP", "rappp", MERGE_guessed, false},
	{"… and the list is cut", "aLro", "pPPC", "appp", MERGE_list_cut, false},
	{"… behind more loops than entries", "LrLrLaro", "P", "LrLrLaro", MERGE_differ, false},
	{"… whose caller is cut", "a", "pP", "app", MERGE_joined, true},
	{"an interpreter that is not the first, alone in its thread", "LrLro", "PpPX", "pMmppMmo",
	 MERGE_joined, false},
	{"… in a thread with an entry of its own", "Lro", "P0X", "pMmo", MERGE_joined, false},
	{"… called by another one", "LrLrLro", "PPX", "pMmpMmMmo", MERGE_list_other, false},
	{"… without frames yet", "rLro", "X", "rLro", MERGE_list_other, false},
	{"… without frames or loops", "oo", "X", "oo", MERGE_none, false},
	{"… with more entries than loops", "Lro", "PPX", "Lro", MERGE_differ, false},
	{"… without an end", "LrLro", "pX", "pMmMmo", MERGE_list_wrong, false},
	{"… where the native part is cut", "L", "PPX", "pMp", MERGE_list_other, true},
	{"generators that wait for one another (3.10)", "LrLrLro", "GGP", "pMmpMmpMmo",
	 MERGE_joined, false},
	{"… and are passed by an exception", "LrLrrLrLro", "PGGGPP", "pMmpMmmpppMmpMmo",
	 MERGE_joined, false},
	{"… (3.11)", "LrrLro", "pGGGpP", "ppMmmppppMmo", MERGE_joined, false},
	{"… where one runs on and waits for another one", "LrLrLro", "GGGGP", "LrLrLro",
	 MERGE_differ, false},
	{"… which ends the list (3.9)", "LrLro", "GG", "LrLro", MERGE_differ, false},
	{"… when just entering", "LrLrLro", "PGG", "LrLrLro", MERGE_differ, false},
	{"a kernel thread", "", "", "", MERGE_none, false},
	{"the lock is waited for, in the loop", "grLro", "pP", "mppMmo", MERGE_joined, false},
	{"… by an extension that has no frame of Python's", "grroo", "P0", "rroo", MERGE_differ,
	 false},
	{"… by an extension that Python called", "grroorLro", "P", "mmoompMmo", MERGE_joined,
	 false},
};

enum { MOST = 64 };

static size_t list_of(const char *text, uint64_t *words)
{
	size_t count = 0;

	for (; *text; text++) {
		const uint64_t code = *text == '0' ? 0 : 0x1000 + count;
		static const char ends[] = "CUOWX";
		const char *end = strchr(ends, *text);
		if (end)
			words[count++] = runtime_frame_end((enum runtime_end)(end - ends + 1));
		else if (*text == 'x')
			words[count++] = 77ULL << STACK_FRAME_KIND_SHIFT;
		else
			words[count++] = runtime_frame_code(code);
		if (*text == 'p' || *text == 'P' || *text == '0' || *text == 'G')
			words[count++] = runtime_frame_place(2, 1, *text != 'p') |
					 (*text == 'G' ? RUNTIME_FRAME_GENERATOR : 0);
	}
	return count;
}

static uint8_t role_of(char letter)
{
	return letter == 'L'   ? NATIVE_LOOP
	       : letter == 'r' ? NATIVE_RUNTIME
	       : letter == 's' ? NATIVE_SWITCH
	       : letter == 'a' ? NATIVE_MADE
			       : NATIVE_OTHER;
}

static enum frame_merge_result merge(const char *native, const char *list, bool is_cut, char *text)
{
	uint8_t roles[MOST];
	uint64_t words[2 * MOST];
	struct merged_frame out[2 * MOST];
	struct frame_merge stack = {.roles = roles, .list = words, .is_native_whole = !is_cut};
	uint32_t next_native = 0, next_word = 0;
	size_t count;

	stack.is_for_lock = *native == 'g';
	native += stack.is_for_lock;
	for (; native[stack.native_count]; stack.native_count++)
		roles[stack.native_count] = role_of(native[stack.native_count]);
	stack.list_words = list_of(list, words);
	const enum frame_merge_result result = frame_merge(&stack, out, &count);
	for (size_t i = 0; i < count; i++) {
		const struct merged_frame *frame = &out[i];
		char letter = frame->is_language ? 'p' : native[frame->at];
		if (frame->is_runtime)
			letter = letter == 'L' ? 'M' : 'm';
		text[i] = letter;
		/* each once, and in their order */
		if (frame->is_language ? frame->at < next_word || frame->at % 2
				       : frame->at != next_native++)
			text[i] = '!';
		next_word = frame->is_language ? frame->at + 2 : next_word;
	}
	text[count] = '\0';
	return result;
}

static void test_rows(void)
{
	char text[2 * MOST + 1];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *row = &rows[i];
		const enum frame_merge_result result = merge(row->native, row->list, row->is_cut,
							     text);
		const bool ok = result == row->result && !strcmp(text, row->merged);
		if (!check_report(ok, row->what, __FILE__, __LINE__))
			printf("#  got: %s %s\n# want: %s %s\n", text, frame_merge_name(result),
			       row->merged, frame_merge_name(row->result));
	}
}

/* What runs on a stack of its own ends with the first s behind its last loop; behind it stands what
 * others left. */
static void test_running(void)
{
	static const struct {
		const char *native, *list;
		size_t running;
	} cases[] = {
		{"LrsssrLro", "P", 3},
		{"LrsssrLro", "pP", 3},
		{"LrsssrLro", "PP", 9},
		{"LrLrssrLrssrL", "PP", 5},
		{"LrLrssrLrssrL", "PPP", 10},
		{"LrLrssrLo", "P", 5},
		{"LrssrLo", "P0", 3},
		{"sLrsL", "P", 4},
		{"ssLrL", "", 5},
		{"LrssrLrssL", "PC", 3},
		{"LrssrLrssL", "PPC", 8},
		{"LrssrLrssL", "PPPPC", 10},
		{"LrLo", "PP", 4},
		{"s", "P", 1},
		{"", "P", 0},
		{"LrsL", "x", 4},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint8_t roles[MOST];
		uint64_t words[2 * MOST];
		struct frame_merge stack = {.roles = roles, .list = words};

		for (; cases[i].native[stack.native_count]; stack.native_count++)
			roles[stack.native_count] = role_of(cases[i].native[stack.native_count]);
		stack.list_words = list_of(cases[i].list, words);
		if (!CHECK(frame_merge_running(&stack) == cases[i].running))
			printf("# %s with %s\n", cases[i].native, cases[i].list);
	}
}

/* A true stack, leaf first: native frames, and runs each behind its loop. */
static void make(char *native, char *list, char *merged)
{
	size_t n = 0, l = 0, m = 0;
	bool has_language = false;

	for (int loops = rand() % 6; loops >= 0; loops--) {
		for (int i = rand() % 4; i > 0; i--) {
			const char kind = rand() % 2 ? 'r' : 'o';
			native[n++] = kind;
			merged[m++] = kind == 'r' && has_language ? 'm' : kind;
		}
		if (!loops)
			break;
		const int frames = rand() % 5;
		if (!frames)
			list[l++] = '0';
		for (int i = 1; i <= frames; i++) {
			list[l++] = i == frames ? 'P' : 'p';
			merged[m++] = 'p';
			has_language = true;
		}
		native[n++] = 'L';
		merged[m++] = has_language ? 'M' : 'L';
	}
	native[n] = list[l] = merged[m] = '\0';
}

static void test_taken_apart(void)
{
	char native[MOST], list[MOST], merged[MOST], text[2 * MOST + 1];
	unsigned wrong = 0, cut_wrong = 0;

	srand(27);
	for (int i = 0; i < 100000; i++) {
		make(native, list, merged);
		const enum frame_merge_result result = merge(native, list, false, text);
		wrong += strcmp(text, merged) != 0 || result != (*list ? MERGE_joined : MERGE_none);
		/* cut anywhere, it is the same from the leaf to the cut */
		if (!*list)
			continue;
		const size_t at = strlen(list) ? (size_t)rand() % strlen(list) : 0;
		strcpy(list + at, "C");
		const size_t same = strcspn(merged, "pM");
		cut_wrong += merge(native, list, false, text) != MERGE_list_cut ||
			     strncmp(text, merged, same) != 0;
	}
	CHECK_NUMBER(wrong, 0);
	CHECK_NUMBER(cut_wrong, 0);
}

int main(void)
{
	test_rows();
	test_running();
	test_taken_apart();
	for (int i = 0; i < MERGE_COUNT; i++)
		if (frame_merge_sentence((enum frame_merge_result)i) == NULL)
			CHECK(false);
	return checks_done();
}

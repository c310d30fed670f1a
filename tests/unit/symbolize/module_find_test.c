/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/module_find.h"

#include "tests/check.h"

/* From Breakpad's documentation of its symbol files, "MODULE records", and its own swapping of a
 * build-id's first fields. */
static void check_id(const char *text, bool ok, bool is_breakpad, const char *hex)
{
	struct module_question question;
	char got[BUILD_ID_HEX];

	CHECK(module_question_parse(text, &question) == ok);
	if (!ok)
		return;
	CHECK(question.is_breakpad == is_breakpad);
	CHECK_TEXT(build_id_format(&question.id, got), hex);
	CHECK(!question.is_known);
}

int main(void)
{
	check_id("33221100554477668899AABBCCDDEEFF0", true, true,
		 "00112233445566778899aabbccddeeff");
	check_id("33221100554477668899aabbccddeeff0", true, true,
		 "00112233445566778899aabbccddeeff");
	/* A program of samply's tests, and the id that samply knows it by. */
	check_id("BE4E976C325246EE9D6B7847A670B2A90", true, true,
		 "6c974ebe5232ee469d6b7847a670b2a9");
	check_id("00112233445566778899AABBCCDDEEFF00112233", true, false,
		 "00112233445566778899aabbccddeeff00112233");
	check_id("0123456789abcdef", true, false, "0123456789abcdef");
	/* Another age is a PDB's; no file here has one. */
	check_id("33221100554477668899AABBCCDDEEFF2", false, false, "");
	check_id("33221100554477668899AABBCCDDEEF-0", false, false, "");
	check_id("", false, false, "");
	check_id("012345", false, false, "");
	check_id("0123456789abcde", false, false, "");
	check_id("not an id", false, false, "");
	return checks_done();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/check.h"

#include <stdlib.h>
#include <unistd.h>

#include "node-agent/network/token.h"

static char path[] = "/tmp/farflame_token_XXXXXX";

static void put(const char *text, size_t length)
{
	FILE *file = fopen(path, "w");

	fwrite(text, 1, length, file);
	fclose(file);
}

int main(void)
{
	static struct token token, none;
	static char long_text[TOKEN_MAX + 10];
	struct error err = {0};

	CHECK(mkstemp(path) >= 0);
	CHECK(token_refresh(&none, &err) && !token_text(&none));
	token.path = path;
	CHECK(!token_refresh(&token, &err));
	put("first-secret \n", 14);
	CHECK(token_refresh(&token, &err));
	CHECK_TEXT(token_text(&token), "first-secret");
	put("the second one!\n", 15);
	CHECK(!token_refresh(&token, &err));
	CHECK_TEXT(token_text(&token), "first-secret");
	put("second", 6);
	CHECK(token_refresh(&token, &err));
	CHECK_TEXT(token_text(&token), "second");
	put("a\rb: c", 6);
	CHECK(token_refresh(&token, &err));
	CHECK_TEXT(token_text(&token), "a");
	memset(long_text, 'x', sizeof long_text);
	put(long_text, sizeof long_text);
	CHECK(!token_refresh(&token, &err));
	unlink(path);
	CHECK(!token_refresh(&token, &err));
	CHECK_TEXT(token_text(&token), "a");
	return checks_done();
}

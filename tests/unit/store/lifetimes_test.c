/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts that name a process → with what another one of the day tells of it. */
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

#include "symbol-server/store/sqlite/dictionary/catalog_lifetimes.h"

#define LIFETIME(id_)  "\x1f" CONTEXT_LIFETIME "\x1e" id_
#define PATH(text_)    "\x1fprocess.executable.path\x1e" text_
#define COMMAND(text_) "\x1fprocess.command_line\x1e" text_

static struct catalog *catalog;

static uint32_t add(const char *text)
{
	return catalog_add_string(catalog, (struct text){text, (uint32_t)strlen(text)});
}

/* What the context says under the name, joined with what is known below that string. */
static const char *joined(uint32_t strings, const char *context, const char *name)
{
	static char value[CONTEXT_BYTES_MAX];
	char out[CONTEXT_BYTES_MAX];
	struct lifetimes *lifetimes = catalog_lifetimes_new(catalog, strings);

	if (!lifetimes)
		abort();
	sample_context_get(lifetimes_join(lifetimes, context, out), name, value, sizeof value);
	lifetimes_free(lifetimes);
	return value;
}

static uint32_t all(void)
{
	return catalog_mark(catalog).count[CATALOG_STRINGS];
}

static void test_join(void)
{
	add("a function");
	add("main" COMMAND("web --shard 1") LIFETIME("7.aa") "\x1fprocess.owner\x1ewww"
							     "\x1fthread.id\x1e"
							     "7");
	add("main" LIFETIME("7.bb") COMMAND("web --shard 2"));
	add("pool" LIFETIME("8.cc"));
	CHECK_TEXT(joined(all(), "pool" LIFETIME("7.aa"), "command"), "web --shard 1");
	CHECK_TEXT(joined(all(), "pool" LIFETIME("7.aa"), "user"), "www");
	CHECK_TEXT(joined(all(), "pool" LIFETIME("7.aa"), "pid"), "7");
	CHECK_TEXT(joined(all(), "pool" LIFETIME("7.aa"), "thread"), "pool");
	CHECK_TEXT(joined(all(), "pool" LIFETIME("7.aa"), "thread_id"), "");
	CHECK_TEXT(joined(all(),
			  "pool" LIFETIME("7.bb") "\x1fthread.id\x1e"
						  "9",
			  "command"),
		   "web --shard 2");
	CHECK_TEXT(joined(all(), "pool" LIFETIME("7.bb"), "user"), "");
	/* its program is what it is told to run, else its executable's base name */
	add("main" LIFETIME("7.dd") PATH("/usr/bin/python3.11") "\x1f"
								"farflame.program\x1e"
								"app.py");
	add("main" LIFETIME("7.ee") PATH("/usr/bin/python3.11"));
	CHECK_TEXT(joined(all(), "pool" LIFETIME("7.dd"), "program"), "app.py");
	CHECK_TEXT(joined(all(), "pool" LIFETIME("7.dd"), "exe"), "/usr/bin/python3.11");
	CHECK_TEXT(joined(all(), "pool" LIFETIME("7.ee"), "program"), "python3.11");
	CHECK_TEXT(joined(all(), "main" LIFETIME("7.ee") PATH("web"), "program"), "web");
	CHECK_TEXT(joined(all(), "main" LIFETIME("7.ff") PATH("/"), "program"), "");
	CHECK_TEXT(joined(all(), "pool" LIFETIME("7.bb"), "program"), "");
	/* the one that tells it */
	CHECK_TEXT(joined(all(), "main" LIFETIME("7.bb") COMMAND("web --shard 2"), "pid"), "7");
	/* nobody told of these, or they say nothing */
	CHECK_TEXT(joined(all(), "pool" LIFETIME("8.cc"), "command"), "");
	CHECK_TEXT(joined(all(), "pool" LIFETIME("8.cc"), "pid"), "8");
	CHECK_TEXT(joined(all(), "pool" LIFETIME("7.a"), "command"), "");
	CHECK_TEXT(joined(all(), "pool" LIFETIME(""), "pid"), "");
	CHECK_TEXT(joined(all(), "pool", "pid"), "");
	CHECK_TEXT(joined(all(), "", "pid"), "");
}

static void test_teller(void)
{
	struct lifetimes *lifetimes = catalog_lifetimes_new(catalog, all());
	static const char teller[] = "main" COMMAND("web --shard 1")
		LIFETIME("7.aa") "\x1fprocess.owner\x1ewww"
				 "\x1fthread.id\x1e"
				 "7";
	char out[CONTEXT_BYTES_MAX];
	uint32_t n = lifetimes_teller(lifetimes, "pool" LIFETIME("7.aa"));

	CHECK_TEXT(catalog_string(catalog, n)->text, teller);
	CHECK_NUMBER(lifetimes_teller(lifetimes, teller), 0);
	CHECK_NUMBER(lifetimes_teller(lifetimes, "pool" LIFETIME("8.cc")), 0);
	CHECK_NUMBER(lifetimes_teller(lifetimes, "pool"), 0);
	lifetimes_free(lifetimes);
	lifetime_reduce(teller, out);
	CHECK_TEXT(out, LIFETIME("7.aa") COMMAND("web --shard 1") "\x1fprocess.owner\x1ewww");
	lifetime_reduce("pool", out);
	CHECK_TEXT(out, "");
}

/* What came after the view was opened is not looked at. */
static void test_mark(void)
{
	const uint32_t before = all();

	add("main" LIFETIME("9.dd") COMMAND("late"));
	CHECK_TEXT(joined(before, "pool" LIFETIME("9.dd"), "command"), "");
	CHECK_TEXT(joined(all(), "pool" LIFETIME("9.dd"), "command"), "late");
}

/* As long as contexts may be: nothing is written beyond the room. */
static void test_long(void)
{
	char tells[CONTEXT_BYTES_MAX], asks[CONTEXT_BYTES_MAX];

	for (size_t length = 1; length < CONTEXT_BYTES_MAX - 64; length = length * 2 + 1) {
		snprintf(tells, sizeof tells, "m%sx%zu%s", LIFETIME("4.ee"), length,
			 "\x1fprocess.owner\x1e");
		memset(tells + strlen(tells), 'u', CONTEXT_BYTES_MAX - 1 - strlen(tells));
		tells[CONTEXT_BYTES_MAX - 1] = '\0';
		memset(asks, 't', length);
		snprintf(asks + length, sizeof asks - length, "%sx%zu", LIFETIME("4.ee"), length);
		add(tells);
		CHECK_TEXT(joined(all(), asks, "pid"), "4");
	}
}

static void test_told(void)
{
	CHECK(lifetime_is_told("main" LIFETIME("7.aa") COMMAND("web")));
	CHECK(lifetime_is_told("\x1fprocess.pid\x1e"
			       "7"
			       "\x1fprocess.owner\x1ewww"));
	CHECK(!lifetime_is_told("main" LIFETIME("7.aa") "\x1fprocess.pid\x1e"
							"7"));
	CHECK(!lifetime_is_told("main\x1fthread.id\x1e"
				"7"));
	CHECK(!lifetime_is_told(""));
}

int main(void)
{
	catalog = catalog_new();
	if (!catalog)
		abort();
	test_join();
	test_told();
	test_teller();
	test_mark();
	test_long();
	catalog_release(catalog);
	return checks_done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Truth: c++filt -p of binutils, for every mangled name of this program and its libraries. */
#include "symbol-server/naming/demangle.h"

#include <stdlib.h>

#include "tests/check.h"

static struct arena arena;

static void names(void)
{
	CHECK_TEXT(demangle("main", &arena), "main");
	CHECK_TEXT(demangle("_Z3fooi", &arena), "foo");
	CHECK_TEXT(demangle("_ZNSt6vectorIiSaIiEE9push_backERKi", &arena),
		   "std::vector<int, std::allocator<int> >::push_back");
	CHECK_TEXT(demangle("_ZL5outeri", &arena), "outer");
	CHECK_TEXT(demangle("_ZN12_GLOBAL__N_15localEv", &arena), "(anonymous namespace)::local");
	/* compiler suffixes and versions */
	CHECK_TEXT(demangle("_Z3fooi.isra.0", &arena), "foo");
	CHECK_TEXT(demangle("_Z3fooi.isra.0.cold", &arena), "foo");
	CHECK_TEXT(demangle("foo.constprop.0.isra.12", &arena), "foo");
	CHECK_TEXT(demangle("foo.part.3", &arena), "foo");
	CHECK_TEXT(demangle("crypto/tls.(*clientHelloMsg).clone", &arena),
		   "crypto/tls.(*clientHelloMsg).clone"); /* Go's own name */
	CHECK_TEXT(demangle("main.clone", &arena), "main.clone");
	CHECK_TEXT(demangle("a/b.cold", &arena), "a/b.cold");
	CHECK_TEXT(demangle("main.cold", &arena), "main");
	CHECK_TEXT(demangle("foo.lto_priv.0", &arena), "foo");
	CHECK_TEXT(demangle("foo.llvm.1234567890", &arena), "foo");
	CHECK_TEXT(demangle("memcpy@@GLIBC_2.14", &arena), "memcpy");
	CHECK_TEXT(demangle("memcpy@GLIBC_2.2.5", &arena), "memcpy");
	/* not suffixes */
	CHECK_TEXT(demangle("nested.1234", &arena), "nested.1234");
	CHECK_TEXT(demangle("a.b.c", &arena), "a.b.c");
	CHECK_TEXT(demangle(".cold", &arena), ".cold");
	CHECK_TEXT(demangle("@", &arena), "@");
	CHECK_TEXT(demangle("", &arena), "");
	CHECK_TEXT(demangle("_Znotmangled", &arena), "_Znotmangled");
	CHECK_TEXT(demangle("_Z", &arena), "_Z");
	CHECK_TEXT(demangle("_R", &arena), "_R");
	/* Rust, both manglings */
	CHECK_TEXT(demangle("_RNvNtNtCs1234_7mycrate3foo3bar3baz", &arena),
		   "mycrate::foo::bar::baz");
	CHECK_TEXT(demangle("_ZN4core3fmt5write17h0123456789abcdefE", &arena), "core::fmt::write");
	/* stubs: called like what they call, and not it */
	CHECK_TEXT(demangle("puts@plt", &arena), "puts@plt");
	CHECK_TEXT(demangle("_ZdlPv@plt", &arena), "operator delete@plt");
	CHECK_TEXT(demangle("*ABS*+0xa0ae0@plt", &arena), "*ABS*+0xa0ae0@plt");
	CHECK_TEXT(demangle("_Znotmangled@plt", &arena), "_Znotmangled@plt");
	CHECK_TEXT(demangle("@plt", &arena), "@plt");
	CHECK_TEXT(demangle("puts@pltfoo", &arena), "puts");
	/* languages libiberty's two demanglers do not know stay as they are */
	CHECK_TEXT(demangle("$s4main3fooyyF", &arena), "$s4main3fooyyF");
	CHECK_TEXT(demangle("_D3std5stdio7writelnFZv", &arena), "_D3std5stdio7writelnFZv");
}

static void signatures(void)
{
	CHECK_TEXT(demangle_signature("_Z4worki", &arena), "work(int)");
	CHECK_TEXT(demangle_signature("_Z4workIiET_S0_", &arena), "int work<int>(int)");
	CHECK_TEXT(demangle_signature("_Z4worki.isra.0.cold", &arena), "work(int)");
	CHECK_TEXT(demangle_signature("_ZdlPv@plt", &arena), "operator delete(void*)@plt");
	CHECK_TEXT(demangle_signature("_ZN1AC1Ei", &arena), "A::A(int)");
	CHECK_TEXT(demangle_signature("_ZN1AC2Ei", &arena), "A::A(int)");
	CHECK_TEXT(demangle_signature("_ZN4core3fmt5write17h0123456789abcdefE", &arena),
		   "core::fmt::write::h0123456789abcdef");
	CHECK(!demangle_signature("main", &arena));
	CHECK(!demangle_signature("main.cold", &arena));
	CHECK(!demangle_signature("puts@plt", &arena));
	CHECK(!demangle_signature("_Znotmangled", &arena));
	CHECK(!demangle_signature("", &arena));
}

typedef const char *demangle_fn(const char *name, struct arena *arena);

static void like_cxxfilt(demangle_fn *demangled, const char *options)
{
	char command[512], line[8192], raw[8192];
	unsigned count = 0, different = 0;
	FILE *pipe;

	if (system("c++filt --version >/dev/null 2>&1 && nm --version >/dev/null 2>&1")) {
		SKIP("needs nm and c++filt (binutils)");
		return;
	}
	snprintf(command, sizeof(command),
		 "f=$(ldconfig -p | sed -n 's/.*libstdc++.so.6 .*=> //p' | head -n 1); "
		 "nm -D $f | sed -n 's/.* \\(_Z[^ @]*\\).*/\\1/p' | sort -u > $T/names; "
		 "c++filt %s < $T/names | paste -d ' ' $T/names -",
		 options);
	setenv("T", mkdtemp(strcpy(raw, "/tmp/demangle-XXXXXX")), 1);
	pipe = popen(command, "r");
	while (pipe && fgets(line, sizeof(line), pipe)) {
		char *plain = strchr(line, ' ');

		if (!plain)
			continue;
		*plain++ = '\0';
		plain[strcspn(plain, "\n")] = '\0';
		count++;
		arena_clear(&arena);
		if (strcmp(demangled(line, &arena), plain) != 0 && different++ < 5)
			printf("# %s\n#  got %s\n# want %s\n", line, demangled(line, &arena),
			       plain);
	}
	if (pipe)
		pclose(pipe);
	if (system("rm -r \"$T\""))
		printf("# temporary folder left\n");
	printf("# %u names of libstdc++\n", count);
	CHECK(count > 1000);
	CHECK_NUMBER(different, 0);
}

/* Templates' names have thousands of bytes, more than libiberty's own limit. */
static void long_names(void)
{
	char mangled[9000], want[12000];
	size_t length = (size_t)sprintf(mangled, "_ZN"), plain = 0;

	for (int i = 0; i < 700; i++) {
		length += (size_t)sprintf(mangled + length, "9namespace");
		plain += (size_t)sprintf(want + plain, "namespace::");
	}
	strcpy(mangled + length, "1fEv");
	strcpy(want + plain, "f");
	CHECK_TEXT(demangle(mangled, &arena), want);
	/* one that is longer stays as it is */
	for (int i = 0; i < 150; i++)
		length += (size_t)sprintf(mangled + length, "9namespace");
	strcpy(mangled + length, "1fEv");
	CHECK_TEXT(demangle(mangled, &arena), mangled);
}

/* Names that ask for endless or deep results end, within limits. */
static void hostile(void)
{
	char name[20000];
	size_t length;
	int found = 0;

	length = (size_t)sprintf(name, "_Z1fI");
	while (length < 9000)
		name[length++] = 'P';
	strcpy(name + length, "iEvv");
	CHECK(strlen(demangle(name, &arena)) > 0);

	/* every substitution doubles the one before */
	length = (size_t)sprintf(name, "_Z1f1AIiiE");
	for (int i = 0; i < 34; i++) {
		char place[16];

		if (i == 0)
			strcpy(place, "S0_");
		else if (i < 9)
			sprintf(place, "S%d_", i);
		else
			sprintf(place, "S%c_", 'A' + i - 9);
		length += (size_t)sprintf(name + length, "1AI%s%sE", place, place);
	}
	CHECK(strlen(demangle(name, &arena)) <= 70000);

	memset(name, '_', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	CHECK_TEXT(demangle(name, &arena), name);
	srand(5);
	for (int round = 0; round < 20000; round++) {
		static const char letters[] = "_ZNSt3fooIiE0123RvPKS_C1D2LT_.@hcs";

		length = 2 + (size_t)rand() % 60;
		for (size_t i = 0; i < length; i++)
			name[i] = letters[(size_t)rand() % (sizeof(letters) - 1)];
		memcpy(name, rand() % 4 ? "_Z" : "_R", 2);
		name[length] = '\0';
		arena_clear(&arena);
		demangle_signature(name, &arena);
		found += demangle(name, &arena) != NULL;
	}
	CHECK(found == 20000); /* what is no name comes back as it is */
}

int main(void)
{
	arena_init(&arena, 64 << 20);
	names();
	signatures();
	like_cxxfilt(demangle, "-p");
	like_cxxfilt(demangle_signature, "");
	long_names();
	hostile();
	arena_release(&arena);
	return checks_done();
}

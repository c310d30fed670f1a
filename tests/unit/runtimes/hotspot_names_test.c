/* SPDX-License-Identifier: Apache-2.0 */
/* Names of classes as JVMs of several versions and libraries have them, and what is none. */
#include "node-agent/runtimes/hotspot_names.h"

#include <string.h>

#include "tests/check.h"

static const char *class_of(const char *name)
{
	static char room[128];
	struct hotspot_text text = {room, 0, sizeof room, false};

	*room = '\0';
	hotspot_text_add_class(&text, (const uint8_t *)name, strlen(name));
	return room;
}

static void test_classes(void)
{
	static const char *const rows[][2] = {
		{"java/util/HashMap$Node", "java.util.HashMap$Node"},
		{"Main", "Main"},
		{"Main$1", "Main$1"},
		{"a/Foo$$Lambda$14", "a.Foo$$Lambda"},
		{"a/Foo$$Lambda$14/0x0000000800c03000", "a.Foo$$Lambda"},
		{"a/Foo$$Lambda$14+0x0000000800c03000", "a.Foo$$Lambda"},
		{"a/Foo$$Lambda+0x00007f1234567890", "a.Foo$$Lambda"},
		{"a/Foo$$Lambda$14/1234567", "a.Foo$$Lambda"},
		{"a/Hidden+0x00007f1234567890", "a.Hidden"},
		{"a/face/beef", "a.face.beef"},
		{"java/lang/invoke/LambdaForm$MH+0x0000000800c0", "java.lang.invoke.LambdaForm$MH"},
		{"java/lang/invoke/LambdaForm$DMH000_invoke", "java.lang.invoke.LambdaForm$DMH"},
		{"java/lang/invoke/LambdaForm$Name", "java.lang.invoke.LambdaForm$Name"},
		{"sun/reflect/GeneratedMethodAccessor12", "sun.reflect.GeneratedMethodAccessor"},
		{"jdk/internal/reflect/GeneratedConstructorAccessor1",
		 "jdk.internal.reflect.GeneratedConstructorAccessor"},
		{"com/sun/proxy/$Proxy7", "com.sun.proxy.$Proxy"},
		{"jdk/proxy2/$Proxy7", "jdk.proxy.$Proxy"},
		{"a/$ProxyFactory", "a.$ProxyFactory"},
		{"a/S$$EnhancerBySpringCGLIB$$1a2b3c", "a.S$$EnhancerBySpringCGLIB"},
		{"a/S$$SpringCGLIB$$0", "a.S$$SpringCGLIB"},
		{"a/S$ByteBuddy$x7Yz", "a.S$ByteBuddy"},
		{"", ""},
		{"/", "."},
		{"+0x1", "+0x1"},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		CHECK_TEXT(class_of(rows[i][0]), rows[i][1]);
}

static void test_characters(void)
{
	CHECK_TEXT(class_of("\xc3\xa9/\xe6\x96\x87"), "\xc3\xa9.\xe6\x96\x87");
	CHECK_TEXT(class_of("\xed\xa0\xbd\xed\xb8\x80"), "\xf0\x9f\x98\x80"); /* two surrogates */
	CHECK_TEXT(class_of("\xed\xa0\xbdx"), "\xef\xbf\xbdx");
	CHECK_TEXT(class_of("\xc0\x80"), "?"); /* NUL, as it is written there */
	CHECK_TEXT(class_of("a\nb"), "a?b");
	CHECK_TEXT(class_of("\xe6\x96"), "\xef\xbf\xbd");
	CHECK_TEXT(class_of("\xff"), "\xef\xbf\xbd");
}

static void test_cut(void)
{
	char room[5] = "";
	struct hotspot_text text = {room, 0, sizeof room, false};

	hotspot_text_add(&text, (const uint8_t *)"abc\xc3\xa9", 5);
	CHECK_TEXT(room, "abc");
	CHECK(text.is_cut);
	hotspot_text_add(&text, (const uint8_t *)"d", 1);
	CHECK_TEXT(room, "abc");
}

static void test_scala(void)
{
	static const char *const rows[][2] = {
		{"$plus$plus", "++"},
		{"$colon$colon", "::"},
		{"foldLeft", "foldLeft"},
		{"value_$eq", "value_="},
		{"$anonfun$main$1", "$anonfun$main$1"},
		{"$equals", "$equals"},
		{"$init$", "$init$"},
		{"$", "$"},
		{"List$.$less", "List$.<"},
	};
	char room[64];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hotspot_text text = {room, 0, sizeof room, false};

		hotspot_text_add(&text, (const uint8_t *)rows[i][0], strlen(rows[i][0]));
		hotspot_text_decode_scala(&text);
		CHECK_TEXT(room, rows[i][1]);
		CHECK_NUMBER(text.length, strlen(rows[i][1]));
	}
}

int main(void)
{
	test_classes();
	test_characters();
	test_cut();
	test_scala();
	return checks_done();
}

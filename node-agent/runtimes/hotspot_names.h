/* SPDX-License-Identifier: Apache-2.0 */
/* What Java's classes and methods are called, as people write it. What a virtual machine or a
 * library has made up at run time has the name of what it is, without the number that differs with
 * each start: Foo$$Lambda, $Proxy, GeneratedMethodAccessor. Pure. */
#ifndef NODE_AGENT_RUNTIMES_HOTSPOT_NAMES_H
#define NODE_AGENT_RUNTIMES_HOTSPOT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hotspot_text {
	char *to;
	size_t length, room; /* with its NUL */
	bool is_cut;         /* between two characters */
};

/* Adds a text of the virtual machine's, in its modified UTF-8 (JVMS 4.4.7), as UTF-8; what is none
 * becomes U+FFFD, what cannot be printed '?'. */
void hotspot_text_add(struct hotspot_text *text, const uint8_t *bytes, size_t length);

/* The same of a class, by its internal name: java/util/Map$Entry → java.util.Map$Entry. */
void hotspot_text_add_class(struct hotspot_text *text, const uint8_t *bytes, size_t length);

/* A name of a file of Scala's, as it is written there: $plus$plus → ++ (scala.reflect's
 * NameTransformer). In place; it becomes no longer. */
void hotspot_text_decode_scala(struct hotspot_text *text);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The request's shared tables: spans first, then strings, attributes, modules and locations, once
 * each; stacks when a sample asks for them. An entry that refers outside the tables is marked and
 * spoils only what uses it. */
#ifndef SYMBOL_SERVER_INGEST_DICTIONARY_H
#define SYMBOL_SERVER_INGEST_DICTIONARY_H

#include "common/arena.h"
#include "symbol-server/ingest/texts.h"
#include "symbol-server/ingest/wire.h"
#include "symbol-server/store/sample_batch.h"

enum { /* field numbers of ProfilesDictionary */
       TABLE_MAPPINGS = 1,
       TABLE_LOCATIONS,
       TABLE_FUNCTIONS,
       TABLE_LINKS,
       TABLE_STRINGS,
       TABLE_ATTRIBUTES,
       TABLE_STACKS,
};

enum { TEXT_MAX = 32 << 10 };    /* bytes of one string; the rest is cut off */
enum { STACK_DEPTH_MAX = 2048 }; /* frames; deeper stacks are cut at the root end and say so */

enum attribute_key { /* the dictionary attributes that mean something here */
		     KEY_OTHER,
		     KEY_THREAD_NAME,
		     KEY_THREAD_ID,
		     KEY_INCOMPLETE,
		     KEY_FRAME_TYPE,
		     KEY_GNU,
		     KEY_GO,
		     KEY_HTLHASH,
		     KEY_ADDRESS_BASE,
		     KEY_ANONYMOUS,
		     KEY_RUNTIME,
		     KEY_PROCESS, /* what a process is: sample_context.h */
};

struct attribute_value { /* an AnyValue, as far as it is text or a whole number */
	enum { VALUE_NONE, VALUE_TEXT, VALUE_NUMBER } kind;
	struct text text;
	int64_t number; /* booleans are 0 and 1 */
};

struct dictionary_attribute {
	enum attribute_key key;
	struct attribute_value value;
	struct text
		name; /* of KEY_OTHER, KEY_PROCESS, KEY_THREAD_ID: fit for a context; "" when not */
	uint32_t incomplete; /* location of the sentence + 1, when one was made */
};

struct dictionary_mapping {
	uint64_t start, limit, file_offset;
	uint32_t module; /* in the batch; UINT32_MAX: none */
	bool is_kernel;
	bool is_bad;
};

struct dictionary_function {
	struct text name, file;
	bool is_bad;
};

/* One entry of the location table is one or more locations of the batch: inlined frames, innermost
 * first. */
struct dictionary_location {
	uint32_t first, count; /* into the batch's locations */
	bool is_bad;
	bool is_marker; /* abort-marker: belongs to the root end */
};

struct dictionary_stack {
	struct wire wire;
	uint32_t plain;      /* batch stack + 1 without a reason, 0: not made yet */
	uint32_t incomplete; /* the same with the reason of attribute incomplete_attribute */
	uint32_t incomplete_attribute;
};

struct dictionary_table { /* spans of one table's entries, all occurrences of the field joined */
	struct wire *spans;
	uint32_t count, capacity;
};

struct dictionary {
	struct arena *arena;
	struct sample_batch *batch;
	struct dictionary_table tables[8]; /* by field number */
	struct text *strings;
	uint32_t string_count;
	struct dictionary_attribute *attributes;
	uint32_t attribute_count;
	struct dictionary_mapping *mappings;
	uint32_t mapping_count;
	struct dictionary_function *functions;
	uint32_t function_count;
	struct dictionary_location *locations;
	uint32_t location_count;
	struct dictionary_stack *stacks;
	uint32_t stack_count;
	uint64_t *location_hashes; /* one per batch location */
	uint64_t *module_hashes;   /* one per batch module */
	uint32_t location_capacity, index_capacity, stack_capacity;
	uint32_t cut_location, empty_location; /* + 1, when made */
	char problem[160]; /* the first reference outside a table, as a sentence part */
};

enum dictionary_result {
	DICTIONARY_OK,
	DICTIONARY_MALFORMED, /* not protobuf */
	DICTIONARY_BAD_INDEX, /* problem says which */
	DICTIONARY_NO_ROOM,   /* the arena is full */
};

/* spans: every ProfilesDictionary of the request, in order. */
enum dictionary_result dictionary_read(struct dictionary *dictionary, const struct wire *spans,
				       unsigned span_count);

/* The batch's stack for a stack of the table; attribute: the sample's farflame.incomplete, or 0. */
enum dictionary_result dictionary_stack(struct dictionary *dictionary, uint32_t index,
					uint32_t attribute, uint32_t *stack);

/* 24 bytes of the link with that number, trace id first, that live as long as the request; NULL for
 * none (0, or both ids are zero). */
enum dictionary_result dictionary_link(struct dictionary *dictionary, uint32_t index,
				       const uint8_t **ids);

/* Reads an AnyValue; texts repaired. */
enum dictionary_result dictionary_value(struct dictionary *dictionary, struct wire wire,
					struct attribute_value *value);

/* The string of that number; BAD_INDEX outside the table. what names the place for the sentence. */
enum dictionary_result dictionary_string(struct dictionary *dictionary, uint64_t index,
					 const char *what, struct text *text);

/* Steps of dictionary_read(), dictionary_stacks.c: the locations. */
enum dictionary_result dictionary_read_locations(struct dictionary *dictionary);

/* Calls found() for each index of a repeated attribute_indices field. */
enum dictionary_result
dictionary_each_attribute(struct dictionary *dictionary, const struct wire_field *field,
			  void (*found)(void *to, const struct dictionary_attribute *attribute),
			  void *to);

/* Notes the first reference outside a table. */
enum dictionary_result dictionary_bad_index(struct dictionary *dictionary, const char *what,
					    uint64_t index, uint32_t count);

/* Stacks that no sample used are still protobuf: false when one is not. */
bool dictionary_check_unused(const struct dictionary *dictionary);

#endif

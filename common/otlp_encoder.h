/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of common/otlp: one profile on its way into a message. otlp.c makes the dictionary,
 * otlp_samples.c what refers to it. */
#ifndef COMMON_OTLP_ENCODER_H
#define COMMON_OTLP_ENCODER_H

#include "common/otlp_message.h"
#include "common/otlp_order.h"

enum { PROFILE_TYPES_MAX = 12 };

/* What encoding one profile needs: the dictionary being filled and what was put in it already. */
struct encoder {
	struct arena arena;
	const struct profile *profile;
	const struct profile_host *host;
	struct otlp_order order;
	Dictionary *dictionary;
	int32_t *string_rows; /* string number → row of string_table, 0: none yet */
	size_t string_room, attribute_room, function_room;
	int32_t *thread_attributes;     /* string number → attribute index, 0: none yet */
	int32_t *incomplete_attributes; /* likewise */
	int32_t *type_attributes;       /* likewise */
	int32_t *attributes;            /* of the profile's attributes, likewise */
	uint32_t *thread_ids;           /* those of all samples, each once, ascending */
	int32_t *thread_id_attributes;
	size_t thread_id_count;
	int32_t native, kernel, anonymous, runtime; /* attribute indices; runtime 0: none yet */
	int32_t key_thread, key_incomplete, key_frame_type, key_gnu, key_go, key_htlhash, key_base,
		key_anonymous;
};

/* Rows of the dictionary; 0 where there is no room, arena.failed is set. */
int32_t otlp_add_string(struct encoder *encoder, const char *text);
int32_t otlp_string_row(struct encoder *encoder, uint32_t string);
int32_t otlp_add_text_attribute(struct encoder *encoder, int32_t key, const char *text);
int32_t otlp_add_number_attribute(struct encoder *encoder, int32_t key, int64_t number);
/* The attribute whose value is one of the profile's strings; made once per string and key. */
int32_t otlp_string_attribute(struct encoder *encoder, int32_t *known, int32_t key,
			      uint32_t string);

/* A resource per process and type, with all samples. */
bool otlp_fill_resources(struct encoder *encoder, Request *request);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/formats/pprof.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/gzip.h"
#include "symbol-server/formats/human.h"
#include "symbol-server/formats/text_list.h"

enum {
	PLAIN_BYTES = 64 << 10, /* compressed at a time */
	MESSAGE_BYTES = 1 << 30,
	KEY_BYTES = 1 << 30,
	TEXTS_MAX = 16 << 20,
	FUNCTIONS_MAX = 8 << 20,
	COMMENT_BYTES = 256 << 10,
	GZIP_LEVEL = 4,
};

/* Field numbers: schema/formats/pprof.proto. */
enum profile_field {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_MAPPING,
	PROFILE_LOCATION,
	PROFILE_FUNCTION,
	PROFILE_STRING_TABLE,
	PROFILE_TIME_NANOS = 9,
	PROFILE_DURATION_NANOS,
	PROFILE_PERIOD_TYPE,
	PROFILE_PERIOD,
	PROFILE_COMMENT,
	PROFILE_DEFAULT_SAMPLE_TYPE,
};

struct mapping {
	uint32_t number;     /* 0: not met yet */
	uint64_t limit;      /* highest address + 1 */
	uint64_t as_program; /* of samples' values in which it is the outermost program */
	bool lacks_files, lacks_lines, is_kernel;
};

struct function {
	uint32_t name, signature, file; /* numbers of texts */
};

struct sample { /* its key in keys: label values, then locations */
	size_t key;
	uint32_t key_length, label_length;
	uint64_t value, samples;
};

struct pprof {
	const struct flame_answer *answer;
	const char *const *labels;
	unsigned label_count;
	struct buffer plain; /* on its way through gzip to out */
	struct gzip_stream *gzip;
	struct buffer *out;
	struct buffer message, line; /* the message at hand, one inside it */
	struct buffer comment;
	struct text_list texts;
	struct mapping *mappings; /* by module */
	uint32_t mapping_count, location_count;
	uint32_t *location_modules; /* by number − 1; FRAME_NO_MODULE none */
	uint32_t location_room;
	struct function *functions;
	uint32_t function_count, function_room;
	struct hash_table function_table;
	struct sample *samples;
	uint32_t sample_count, sample_room;
	struct hash_table sample_table;
	struct buffer keys;
};

static void put_varint(struct buffer *out, uint32_t field, uint64_t value)
{
	if (!value)
		return; /* proto3's default */
	buffer_append_varint(out, (uint64_t)field << 3);
	buffer_append_varint(out, value);
}

static void put_bytes(struct buffer *out, uint32_t field, const void *bytes, size_t length)
{
	buffer_append_varint(out, (uint64_t)field << 3 | 2);
	buffer_append_varint(out, length);
	buffer_append(out, bytes, length);
}

/* The message written into from becomes a field of out. */
static void put_message(struct buffer *out, uint32_t field, struct buffer *from)
{
	put_bytes(out, field, from->bytes, from->length);
	out->failed |= from->failed;
	buffer_clear(from);
}

static uint64_t int64_of(uint64_t value)
{
	return value < INT64_MAX ? value : INT64_MAX;
}

/* Texts go out when they are met first; their numbers are in order. */
static bool text_number(struct pprof *pprof, const char *text, uint64_t hash, uint32_t *number)
{
	uint32_t before = pprof->texts.count;

	if (!text_list_take(&pprof->texts, text, hash, number))
		return false;
	if (pprof->texts.count > before)
		put_bytes(&pprof->plain, PROFILE_STRING_TABLE, text, strlen(text));
	return true;
}

static bool compress(struct buffer *plain)
{
	struct pprof *pprof = plain->drain_context;

	return gzip_stream_put(pprof->gzip, plain->bytes, plain->length, false, pprof->out);
}

struct pprof *pprof_new(const struct flame_answer *answer, const char *const *labels,
			unsigned label_count, struct buffer *out)
{
	size_t room = answer->memory && answer->memory < KEY_BYTES ? answer->memory : KEY_BYTES;
	struct pprof *pprof = calloc(1, sizeof(*pprof));
	uint32_t empty;

	if (!pprof)
		return NULL;
	pprof->answer = answer;
	pprof->labels = labels;
	pprof->label_count = label_count;
	pprof->out = out;
	buffer_init(&pprof->plain, PLAIN_BYTES);
	pprof->plain.drain = compress;
	pprof->plain.drain_context = pprof;
	buffer_init(&pprof->message, MESSAGE_BYTES);
	buffer_init(&pprof->line, 64);
	buffer_init(&pprof->comment, COMMENT_BYTES);
	buffer_init(&pprof->keys, room);
	text_list_init(&pprof->texts, TEXTS_MAX);
	hash_table_init(&pprof->function_table, FUNCTIONS_MAX);
	hash_table_init(&pprof->sample_table, PPROF_SAMPLES_MAX);
	pprof->mappings = calloc((size_t)answer->module_count + 1, sizeof(*pprof->mappings));
	pprof->gzip = gzip_stream_new(GZIP_LEVEL);
	if (!pprof->mappings || !pprof->gzip || !text_number(pprof, "", 0, &empty)) {
		pprof_free(pprof);
		return NULL;
	}
	return pprof;
}

/* A signature is its system_name. Without one there is none: were it the same as the name, pprof
 * would take the name for a mangled one and strip it of parameters and template arguments. */
static void put_function(struct pprof *pprof, uint32_t id, const struct function *function)
{
	struct buffer *message = &pprof->message;

	put_varint(message, 1, id);
	put_varint(message, 2, function->name);
	put_varint(message, 3, function->signature);
	put_varint(message, 4, function->file);
	put_message(&pprof->plain, PROFILE_FUNCTION, message);
}

/* Its id, from 1; 0: no memory. A function is its name and signature in its file. */
static uint32_t function_id(struct pprof *pprof, const struct flame_frame *frame)
{
	struct function function;
	uint64_t hash;

	if (!text_number(pprof, frame->name, frame->name_hash, &function.name) ||
	    !text_number(pprof, frame->signature ? frame->signature : "", 0, &function.signature) ||
	    !text_number(pprof, frame->file ? frame->file : "", 0, &function.file))
		return 0;
	hash = hash_bytes(&function, sizeof(function), 0);
	HASH_TABLE_EACH(at, &pprof->function_table, hash)
		if (!memcmp(&pprof->functions[at], &function, sizeof(function)))
			return at + 1;
	if (!ARRAY_GROW(pprof->functions, pprof->function_count, pprof->function_room) ||
	    !hash_table_add(&pprof->function_table, hash, pprof->function_count))
		return 0;
	pprof->functions[pprof->function_count++] = function;
	put_function(pprof, pprof->function_count, &function);
	return pprof->function_count;
}

/* 0: no module. What the mapping holds is known at the end, when it is written. */
static uint32_t mapping_id(struct pprof *pprof, const struct pprof_location *location)
{
	const struct flame_frame *inner = location->frames[0];
	struct mapping *mapping;

	if (location->module >= pprof->answer->module_count)
		return 0;
	mapping = &pprof->mappings[location->module];
	if (!mapping->number)
		mapping->number = ++pprof->mapping_count;
	if (location->address >= mapping->limit && location->address < UINT64_MAX)
		mapping->limit = location->address + 1;
	mapping->lacks_files |= !inner->file || !*inner->file;
	mapping->lacks_lines |= !inner->line;
	mapping->is_kernel |= inner->is_kernel || inner->kind == FRAME_kernel;
	return mapping->number;
}

uint32_t pprof_add_location(struct pprof *pprof, const struct pprof_location *location)
{
	uint32_t mapping = mapping_id(pprof, location), id = pprof->location_count + 1;
	struct buffer lines;

	buffer_init(&lines, MESSAGE_BYTES);
	for (unsigned i = 0; i < location->count; i++) {
		uint32_t function = function_id(pprof, location->frames[i]);

		if (!function) {
			buffer_release(&lines);
			return 0;
		}
		put_varint(&pprof->line, 1, function);
		put_varint(&pprof->line, 2, location->frames[i]->line);
		put_message(&lines, 4, &pprof->line);
	}
	put_varint(&pprof->message, 1, id);
	put_varint(&pprof->message, 2, mapping);
	put_varint(&pprof->message, 3, location->address);
	buffer_append(&pprof->message, lines.bytes, lines.length);
	pprof->message.failed |= lines.failed;
	put_message(&pprof->plain, PROFILE_LOCATION, &pprof->message);
	buffer_release(&lines);
	if (pprof->plain.failed ||
	    !ARRAY_GROW(pprof->location_modules, pprof->location_count, pprof->location_room))
		return 0;
	pprof->location_modules[pprof->location_count] = mapping ? location->module
								 : FRAME_NO_MODULE;
	pprof->location_count = id;
	return id;
}

/* The sample whose key was just appended to keys: a known one (the key goes again) or a new one. */
static struct sample *sample_take(struct pprof *pprof, size_t key, uint32_t label_length)
{
	const uint8_t *bytes = pprof->keys.bytes + key;
	uint32_t length = (uint32_t)(pprof->keys.length - key);
	uint64_t hash = hash_bytes(bytes, length, label_length);

	HASH_TABLE_EACH(at, &pprof->sample_table, hash) {
		struct sample *known = &pprof->samples[at];

		if (known->key_length == length && known->label_length == label_length &&
		    !memcmp(pprof->keys.bytes + known->key, bytes, length)) {
			pprof->keys.length = key;
			return known;
		}
	}
	if (!ARRAY_GROW(pprof->samples, pprof->sample_count, pprof->sample_room) ||
	    !hash_table_add(&pprof->sample_table, hash, pprof->sample_count))
		return NULL;
	pprof->samples[pprof->sample_count] =
		(struct sample){.key = key, .key_length = length, .label_length = label_length};
	return &pprof->samples[pprof->sample_count++];
}

/* By its name: no library, kernel, vDSO or file in memory only. */
static bool is_program(const struct pprof *pprof, uint32_t module)
{
	const char *name = pprof->answer->modules[module].name;

	return pprof->mappings[module].number && !pprof->mappings[module].is_kernel && *name &&
	       *name != '[' && !strstr(name, ".so") && strncmp(name, "memfd:", 6) != 0;
}

/* The outermost program of a stack is that of its process. */
static void count_program(struct pprof *pprof, const uint32_t *locations, size_t depth,
			  uint64_t value)
{
	while (depth--) {
		uint32_t module = pprof->location_modules[locations[depth] - 1];

		if (module == FRAME_NO_MODULE || !is_program(pprof, module))
			continue;
		pprof->mappings[module].as_program += value;
		return;
	}
}

bool pprof_add_sample(struct pprof *pprof, const uint32_t *locations, size_t depth,
		      const char *const *label_values, uint64_t value, uint64_t samples)
{
	size_t key = pprof->keys.length;
	uint32_t label_length;
	struct sample *sample;

	for (unsigned i = 0; i < pprof->label_count; i++) {
		uint32_t text;

		if (!text_number(pprof, label_values[i], 0, &text))
			return false;
		buffer_append_varint(&pprof->keys, text);
	}
	label_length = (uint32_t)(pprof->keys.length - key);
	for (size_t i = 0; i < depth; i++)
		buffer_append_varint(&pprof->keys, locations[i]);
	if (pprof->keys.failed || pprof->keys.length - key > UINT32_MAX)
		return false;
	if (pprof->keys.length == key)
		buffer_append_varint(&pprof->keys, 0); /* an empty stack: hash something */
	sample = sample_take(pprof, key, label_length);
	count_program(pprof, locations, depth, value);
	if (!sample)
		return false;
	sample->value += value;
	sample->samples += samples;
	return true;
}

static void put_values(struct buffer *message, struct buffer *line, const struct sample *sample)
{
	buffer_append_varint(line, int64_of(sample->samples));
	buffer_append_varint(line, int64_of(sample->value));
	put_message(message, 2, line);
}

static bool put_sample(struct pprof *pprof, const struct sample *sample, const uint32_t *names)
{
	const uint8_t *at = pprof->keys.bytes + sample->key;
	const uint8_t *end = at + sample->label_length;
	size_t stack_length = sample->key_length - sample->label_length;

	if (stack_length && !(stack_length == 1 && !*end)) /* not the empty stack's 0 */
		put_bytes(&pprof->message, 1, end, stack_length);
	put_values(&pprof->message, &pprof->line, sample);
	for (unsigned i = 0; i < pprof->label_count; i++) {
		uint64_t value;

		if (!varint_read(&at, end, &value))
			return false;
		put_varint(&pprof->line, 1, names[i]);
		put_varint(&pprof->line, 2, value);
		put_message(&pprof->message, 3, &pprof->line);
	}
	put_message(&pprof->plain, PROFILE_SAMPLE, &pprof->message);
	return true;
}

static bool put_samples(struct pprof *pprof)
{
	uint32_t *names = calloc(pprof->label_count + 1, sizeof(*names));
	bool ok = names != NULL;

	for (unsigned i = 0; ok && i < pprof->label_count; i++)
		ok = text_number(pprof, pprof->labels[i], 0, &names[i]);
	for (uint32_t i = 0; ok && i < pprof->sample_count; i++)
		ok = put_sample(pprof, &pprof->samples[i], names) && !pprof->plain.failed;
	free(names);
	return ok;
}

static bool put_mapping(struct pprof *pprof, uint32_t module)
{
	const struct mapping *mapping = &pprof->mappings[module];
	struct buffer *message = &pprof->message;
	uint32_t name, build_id;

	if (!mapping->number)
		return true;
	if (!text_number(pprof, pprof->answer->modules[module].name, 0, &name) ||
	    !text_number(pprof, pprof->answer->modules[module].build_id, 0, &build_id))
		return false;
	put_varint(message, 1, mapping->number);
	/* from 0, whole pages: addresses are the file's own, and mappings never look adjacent */
	put_varint(message, 3, mapping->limit ? ((mapping->limit - 1) | 0xfff) + 1 : 0x1000);
	put_varint(message, 5, name);
	put_varint(message, 6, build_id);
	put_varint(message, 7, true);
	put_varint(message, 8, !mapping->lacks_files);
	put_varint(message, 9, !mapping->lacks_lines);
	put_varint(message, 10, !mapping->lacks_lines);
	put_message(&pprof->plain, PROFILE_MAPPING, message);
	return true;
}

/* The first mapping is taken for the program itself: that of the processes with most, if there is.
 */
static uint32_t main_module(const struct pprof *pprof)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < pprof->answer->module_count; i++)
		if (pprof->mappings[i].as_program > pprof->mappings[most].as_program)
			most = i;
	return most;
}

static bool put_mappings(struct pprof *pprof)
{
	uint32_t first = main_module(pprof);
	bool ok = !pprof->answer->module_count || put_mapping(pprof, first);

	for (uint32_t i = 0; ok && i < pprof->answer->module_count; i++)
		ok = i == first || put_mapping(pprof, i);
	return ok;
}

static bool put_value_type(struct pprof *pprof, uint32_t field, const char *type, const char *unit)
{
	uint32_t type_text, unit_text;

	if (!text_number(pprof, type, 0, &type_text) || !text_number(pprof, unit, 0, &unit_text))
		return false;
	put_varint(&pprof->message, 1, type_text);
	put_varint(&pprof->message, 2, unit_text);
	put_message(&pprof->plain, field, &pprof->message);
	return true;
}

/* "123 s ± 4 s", and how ± of what a reader adds up follows from what it has: sampling_error.h. */
static void print_error(struct buffer *out, const struct flame_answer *answer)
{
	const struct accounting *sums = answer->accounting;
	const double c = sums->sampled.spread;
	char value[HUMAN_TEXT];

	human_sampled_value(sums->value, sums->error, answer->unit, true, value);
	buffer_printf(out, "%s; of a value v of n samples ± 1.96 v √(%.2f / (n + %.2f)), 95 %%%s",
		      value, (1 + c) * (1 + sums->sampled.windows), c,
		      accounting_error_is_least(sums) ? ", at least" : "");
}

static bool put_comment(struct pprof *pprof, size_t at)
{
	uint32_t number;

	if (pprof->comment.failed ||
	    !text_number(pprof, (const char *)pprof->comment.bytes + at, 0, &number))
		return false;
	put_varint(&pprof->plain, PROFILE_COMMENT, number);
	return true;
}

/* go tool pprof prints them above everything: short lines. Each its own text, which has to stay
 * until the end: they follow one another in one buffer. */
static bool put_comments(struct pprof *pprof)
{
	const struct flame_answer *answer = pprof->answer;
	const struct accounting *sums = answer->accounting;
	struct buffer *comment = &pprof->comment;
	size_t second, third;

	buffer_printf(comment, "farflame: %s match=%.120s", answer->type,
		      answer->match ? answer->match : "");
	buffer_append_char(comment, 0);
	second = comment->length;
	buffer_printf(comment,
		      "%llu samples; lost %llu of %llu taken; %llu incomplete, %llu unsymbolized",
		      (unsigned long long)sums->samples, (unsigned long long)sums->lost,
		      (unsigned long long)sums->taken, (unsigned long long)sums->unwind_incomplete,
		      (unsigned long long)sums->unsymbolized);
	buffer_append_char(comment, 0);
	third = comment->length;
	if (sums->is_sampled)
		print_error(comment, answer);
	buffer_append_char(comment, 0);
	return put_comment(pprof, 0) && put_comment(pprof, second) &&
	       (!sums->is_sampled || put_comment(pprof, third));
}

static bool put_head(struct pprof *pprof)
{
	const struct flame_answer *answer = pprof->answer;
	const struct accounting *accounting = answer->accounting;
	uint32_t type;

	if (!put_value_type(pprof, PROFILE_SAMPLE_TYPE, "samples", "count") ||
	    !put_value_type(pprof, PROFILE_SAMPLE_TYPE, answer->type, answer->unit) ||
	    !put_value_type(pprof, PROFILE_PERIOD_TYPE, answer->type, answer->unit) ||
	    !text_number(pprof, answer->type, 0, &type))
		return false;
	put_varint(&pprof->plain, PROFILE_TIME_NANOS, (uint64_t)answer->from_ms * 1000000);
	put_varint(&pprof->plain, PROFILE_DURATION_NANOS,
		   (uint64_t)(answer->until_ms - answer->from_ms) * 1000000);
	if (accounting->samples)
		put_varint(&pprof->plain, PROFILE_PERIOD,
			   int64_of(accounting->value / accounting->samples));
	put_varint(&pprof->plain, PROFILE_DEFAULT_SAMPLE_TYPE, type);
	return put_comments(pprof);
}

bool pprof_finish(struct pprof *pprof)
{
	return put_head(pprof) && put_mappings(pprof) && put_samples(pprof) &&
	       buffer_flush(&pprof->plain) &&
	       gzip_stream_put(pprof->gzip, "", 0, true, pprof->out) && !pprof->out->failed;
}

void pprof_free(struct pprof *pprof)
{
	if (!pprof)
		return;
	buffer_release(&pprof->plain);
	gzip_stream_free(pprof->gzip);
	buffer_release(&pprof->message);
	buffer_release(&pprof->line);
	buffer_release(&pprof->comment);
	buffer_release(&pprof->keys);
	text_list_release(&pprof->texts);
	hash_table_release(&pprof->function_table);
	hash_table_release(&pprof->sample_table);
	free(pprof->mappings);
	free(pprof->location_modules);
	free(pprof->functions);
	free(pprof->samples);
	free(pprof);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/python_thread_name.h"

#include <string.h>

#include "node-agent/runtimes/python_code.h"

enum {
	OBJECT_TYPE = 8, /* PyObject */
	MODULE_DICT = 16,
	DICT_BYTES = 48, /* PyDictObject: … */
	DICT_KEYS = 32,
	DICT_VALUES = 40,
	TYPE_BASICSIZE = 32, /* PyTypeObject */
	TYPE_FLAGS = 168,
	TYPE_DICTOFFSET = 288,
	TYPE_INLINE_VALUES = 1 << 2, /* 3.13 */
	ENTRIES_AT_ONCE = 64,
	ENTRY_WORDS = 3, /* hash, key, value; of dicts whose keys are all str since 3.11: no hash */
	NAME_MAX = 16,   /* of what is looked for */
	DEBUG_OFFSETS_MODULES = 11, /* word of _Py_DebugOffsets of 3.13 */
	INTERPRETERS_MAX = 64,
	OBJECT_MAX = 1 << 16, /* bytes */
};

/* By minor version, from 3.6 on. PyInterpreterState: 3.13 says it itself. PyHeapTypeObject. */
static const struct {
	uint16_t interp_modules, type_cached_keys;
} places[] = {{16, 856},  {40, 856},  {56, 872},  {856, 864},
	      {856, 872}, {888, 872}, {944, 880}, {0, 880}};

struct reader {
	const struct python_memory *memory;
	const struct python_layout *layout;
	uint32_t minor;
};

static bool reader_init(struct reader *reader, const struct python_memory *memory,
			const struct python_layout *layout)
{
	*reader = (struct reader){memory, layout, layout->version >> 16 & 0xff};
	return layout->version >> 24 == 3 && reader->minor >= 6 && reader->minor <= 13 &&
	       layout->bytes_size == 2 * sizeof(uint64_t); /* free-threaded heads are longer */
}

static bool read_bytes(const struct reader *reader, uint64_t address, void *to, size_t bytes)
{
	return address >= 4096 && address + bytes > address &&
	       reader->memory->read(reader->memory->context, address, to, bytes);
}

static bool read_word(const struct reader *reader, uint64_t address, uint64_t *word)
{
	return read_bytes(reader, address, word, sizeof *word);
}

/* --- dicts --- */

struct keys {
	uint64_t entries; /* address */
	uint64_t count;
	uint32_t entry_bytes;
};

static bool keys_read(const struct reader *reader, uint64_t address, struct keys *keys)
{
	uint8_t head[40];
	uint64_t size;

	if (reader->minor >= 11) {
		if (!read_bytes(reader, address, head, 32) || head[9] > 24 || head[10] > 2)
			return false;
		memcpy(&keys->count, head + 24, 8);
		keys->entry_bytes = head[10] ? 16 : 24;
		keys->entries = address + 32 + (1ULL << head[9]);
	} else {
		if (!read_bytes(reader, address, head, 40))
			return false;
		memcpy(&size, head + 8, 8);
		memcpy(&keys->count, head + 32, 8);
		if (size > 1 << 24)
			return false;
		keys->entry_bytes = 24;
		keys->entries = address + 40 + size * (size <= 0xff ? 1 : size <= 0xffff ? 2 : 4);
	}
	if (keys->count > PYTHON_KEYS_MAX)
		keys->count = PYTHON_KEYS_MAX;
	return true;
}

static bool is_text(const struct reader *reader, uint64_t address, const char *text)
{
	const struct python_layout *layout = reader->layout;
	const size_t length = strlen(text);
	uint8_t bytes[128];
	uint64_t has;

	if (layout->unicode_ascii_data + (size_t)NAME_MAX > sizeof bytes || length > NAME_MAX ||
	    layout->unicode_length + 8u > layout->unicode_ascii_data ||
	    !read_bytes(reader, address, bytes, layout->unicode_ascii_data + length))
		return false;
	memcpy(&has, bytes + layout->unicode_length, 8);
	return has == length && !memcmp(bytes + layout->unicode_ascii_data, text, length);
}

/* Where the entry of a key is, by its text or, where that is NULL, its hash. */
static bool find_entry(const struct reader *reader, const struct keys *keys, const char *text,
		       uint64_t hash, uint64_t *index, uint64_t *value_at)
{
	uint64_t words[ENTRIES_AT_ONCE * ENTRY_WORDS];
	const uint32_t width = keys->entry_bytes / 8;

	for (uint64_t from = 0; from < keys->count; from += ENTRIES_AT_ONCE) {
		const uint64_t left = keys->count - from;
		const size_t count = left < ENTRIES_AT_ONCE ? left : (size_t)ENTRIES_AT_ONCE;

		if (!read_bytes(reader, keys->entries + from * keys->entry_bytes, words,
				count * keys->entry_bytes))
			return false;
		for (size_t i = 0; i < count; i++) {
			const uint64_t *entry = words + i * width;
			if (text ? !is_text(reader, entry[width - 2], text)
				 : width != ENTRY_WORDS || entry[0] != hash || !entry[2])
				continue;
			*index = from + i;
			*value_at = keys->entries + (from + i) * keys->entry_bytes +
				    (uint64_t)(width - 1) * 8;
			return true;
		}
	}
	return false;
}

/* Where the value is, of a dict that may share its keys with others. */
static bool dict_find(const struct reader *reader, uint64_t dict, const char *text, uint64_t hash,
		      uint64_t *value_at)
{
	uint64_t words[DICT_BYTES / 8], index;
	struct keys keys;

	if (!read_bytes(reader, dict, words, sizeof words) ||
	    !keys_read(reader, words[DICT_KEYS / 8], &keys) ||
	    !find_entry(reader, &keys, text, hash, &index, value_at))
		return false;
	if (words[DICT_VALUES / 8])
		*value_at = words[DICT_VALUES / 8] + (reader->minor >= 13 ? 8 : 0) + 8 * index;
	return true;
}

static bool dict_get(const struct reader *reader, uint64_t dict, const char *text, uint64_t *value)
{
	uint64_t at;

	return dict_find(reader, dict, text, 0, &at) && read_word(reader, at, value) && *value;
}

/* --- attributes of an object of a class --- */

/* *dict or *values; of these the keys are the class'. */
static bool find_attributes(const struct reader *reader, uint64_t object, uint64_t type,
			    uint64_t *dict, uint64_t *values)
{
	uint64_t word, flags;

	*dict = *values = 0;
	if (reader->minor <= 10)
		return read_word(reader, type + TYPE_DICTOFFSET, &word) && word < OBJECT_MAX &&
		       read_word(reader, object + word, dict);
	if (!read_word(reader, object - 24, dict))
		return false;
	if (reader->minor == 11)
		return *dict || read_word(reader, object - 32, values);
	if (reader->minor == 12) {
		if (*dict & 1) {
			*values = *dict + 1;
			*dict = 0;
		}
		return true;
	}
	if (*dict)
		return true;
	if (!read_word(reader, type + TYPE_BASICSIZE, &word) || word > OBJECT_MAX ||
	    !read_word(reader, type + TYPE_FLAGS, &flags) || !(flags & TYPE_INLINE_VALUES))
		return false;
	*values = object + word + 8;
	return true;
}

static bool find_attribute(const struct reader *reader, uint64_t object, const char *text,
			   uint64_t *value_at)
{
	uint64_t type, dict, values, cached, index;
	struct keys keys;

	if (!read_word(reader, object + OBJECT_TYPE, &type) ||
	    !find_attributes(reader, object, type, &dict, &values))
		return false;
	if (dict)
		return dict_find(reader, dict, text, 0, value_at);
	if (!values ||
	    !read_word(reader, type + places[reader->minor - 6].type_cached_keys, &cached) ||
	    !keys_read(reader, cached, &keys) ||
	    !find_entry(reader, &keys, text, 0, &index, value_at))
		return false;
	*value_at = values + 8 * index;
	return true;
}

/* --- threading --- */

/* The first one, which is the last of the list; and where it has its modules. */
static bool find_modules(const struct reader *reader, uint64_t state, uint64_t *modules)
{
	uint64_t interpreter = 0, next, at = places[reader->minor - 6].interp_modules;

	if (reader->minor == 6) {
		if (!read_word(reader, state, &next) ||
		    !read_word(reader, next + reader->layout->tstate_interp, &interpreter))
			return false;
	} else if (!read_word(reader, state + reader->layout->runtime_interpreters_head,
			      &interpreter)) {
		return false;
	}
	for (int i = 0; i < INTERPRETERS_MAX; i++) {
		if (!read_word(reader, interpreter + reader->layout->interp_next, &next))
			return false;
		if (!next)
			break;
		interpreter = next;
	}
	if (reader->minor == 13 &&
	    (!read_word(reader, state + 8 * DEBUG_OFFSETS_MODULES, &at) || at > 1 << 20))
		return false;
	return read_word(reader, interpreter + at, modules);
}

bool python_thread_table_find(const struct python_memory *memory,
			      const struct python_layout *layout, uint64_t state,
			      struct python_thread_table *out)
{
	struct reader reader;
	uint64_t modules, threading, dict, type;

	return reader_init(&reader, memory, layout) && find_modules(&reader, state, &modules) &&
	       read_word(&reader, modules + OBJECT_TYPE, &out->dict_type) &&
	       dict_get(&reader, modules, "threading", &threading) &&
	       read_word(&reader, threading + MODULE_DICT, &dict) &&
	       dict_get(&reader, dict, "_active", &out->active) &&
	       read_word(&reader, out->active + OBJECT_TYPE, &type) && type == out->dict_type;
}

/* What stands there after the name was read is what stood there before. */
bool python_thread_name_read(const struct python_memory *memory, const struct python_layout *layout,
			     const struct python_thread_table *table, uint64_t thread,
			     char name[PYTHON_THREAD_NAME_BYTES])
{
	struct reader reader;
	uint64_t type, object, object_at, again, text, text_at;

	return reader_init(&reader, memory, layout) &&
	       read_word(&reader, table->active + OBJECT_TYPE, &type) && type == table->dict_type &&
	       dict_find(&reader, table->active, NULL, thread, &object_at) &&
	       read_word(&reader, object_at, &object) &&
	       find_attribute(&reader, object, "_name", &text_at) &&
	       read_word(&reader, text_at, &text) &&
	       python_text_read(memory, layout, text, name, PYTHON_THREAD_NAME_BYTES) && *name &&
	       read_word(&reader, text_at, &again) && again == text &&
	       read_word(&reader, object_at, &again) && again == object;
}

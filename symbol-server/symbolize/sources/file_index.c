/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/sources/file_index.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash_table.h"

enum {
	FILES_MAX = 2000000,
	FOLDERS_MAX = 2000000,
	OTHERS_MAX = 16000000,
	TEXT_MAX = 1 << 30, /* bytes of paths, names and ids */
};

static const uint32_t none = UINT32_MAX;

struct entry {
	uint32_t folder;
	uint32_t text; /* content, length of the id, the id, the name with its NUL */
	uint32_t next_id, next_name;
	uint64_t fingerprint;
};

struct file_index {
	struct entry *entries;
	uint32_t *folders; /* their paths, in text */
	uint64_t *others;
	char *text;
	uint32_t *by_fingerprint; /* numbers of entries; once sealed */
	size_t count, room, folder_count, folder_room, other_count, other_room, text_used,
		text_room;
	struct hash_table by_id, by_name; /* the first of each id, of each base name */
};

unsigned file_content(const struct elf_image *image)
{
	return (image->has_debug_info ? FILE_HAS_DEBUG_INFO : 0) |
	       (image->has_symtab ? FILE_HAS_SYMTAB : 0) |
	       (image->has_dynsym ? FILE_HAS_DYNSYM : 0) | (image->has_code ? FILE_HAS_CODE : 0) |
	       (image->gnu.length ? FILE_HAS_GNU_ID : 0) |
	       (image->has_split_info || image->has_unit_index ? FILE_IS_SPLIT : 0);
}

const char *file_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

struct file_index *file_index_new(void)
{
	struct file_index *index = calloc(1, sizeof(*index));

	if (!index)
		return NULL;
	hash_table_init(&index->by_id, FILES_MAX);
	hash_table_init(&index->by_name, FILES_MAX);
	return index;
}

void file_index_free(struct file_index *index)
{
	if (!index)
		return;
	hash_table_release(&index->by_id);
	hash_table_release(&index->by_name);
	free(index->entries);
	free(index->folders);
	free(index->others);
	free(index->text);
	free(index->by_fingerprint);
	free(index);
}

/* ---- adding ---- */

/* Room for more, half as much again each time; *array is only moved when that succeeds. */
static bool grow(void *array, size_t size, size_t used, size_t more, size_t limit, size_t *room)
{
	size_t wanted = *room + *room / 2 + 64;
	void *moved, **at = array;

	if (used + more <= *room)
		return true;
	if (used + more > limit)
		return false;
	if (wanted < used + more)
		wanted = used + more;
	moved = realloc(*at, wanted * size);
	if (!moved)
		return false;
	*at = moved;
	*room = wanted;
	return true;
}

static char *add_text(struct file_index *index, size_t length, uint32_t *offset)
{
	if (!grow(&index->text, 1, index->text_used, length, TEXT_MAX, &index->text_room))
		return NULL;
	*offset = (uint32_t)index->text_used;
	index->text_used += length;
	return index->text + *offset;
}

int64_t file_index_add_folder(struct file_index *index, const char *path)
{
	uint32_t folder;
	size_t length = strlen(path) + 1;
	char *text;

	if (!grow(&index->folders, sizeof(folder), index->folder_count, 1, FOLDERS_MAX,
		  &index->folder_room))
		return FILE_INDEX_NONE;
	text = add_text(index, length, &folder);
	if (!text)
		return FILE_INDEX_NONE;
	memcpy(text, path, length);
	index->folders[index->folder_count] = folder;
	return (int64_t)index->folder_count++;
}

static const char *name_of(const struct file_index *index, const struct entry *entry)
{
	const char *text = index->text + entry->text;

	return text + 2 + (uint8_t)text[1];
}

static void id_of(const struct file_index *index, const struct entry *entry, struct build_id *id)
{
	const char *text = index->text + entry->text;

	id->length = (uint8_t)text[1];
	memcpy(id->bytes, text + 2, id->length);
}

/* By what all ids with the same first 16 bytes share, so that those are found by them, too. */
static uint64_t id_hash(const struct build_id *id)
{
	uint8_t first[FILE_GUID_BYTES] = {0};

	memcpy(first, id->bytes, id->length < FILE_GUID_BYTES ? id->length : FILE_GUID_BYTES);
	return hash_bytes(first, sizeof(first), 0);
}

static bool link_id(struct file_index *index, uint32_t number, const struct build_id *id)
{
	int64_t first = file_index_find_id(index, id);

	if (first == FILE_INDEX_NONE)
		return hash_table_add(&index->by_id, id_hash(id), number);
	index->entries[number].next_id = index->entries[first].next_id;
	index->entries[first].next_id = number;
	return true;
}

static uint64_t name_hash(const char *name)
{
	return hash_bytes(name, strlen(name), 1);
}

static bool link_name(struct file_index *index, uint32_t number, const char *name)
{
	int64_t first = file_index_find_name(index, name);

	if (first == FILE_INDEX_NONE)
		return hash_table_add(&index->by_name, name_hash(name), number);
	index->entries[number].next_name = index->entries[first].next_name;
	index->entries[first].next_name = number;
	return true;
}

bool file_index_add(struct file_index *index, int64_t folder, const char *name,
		    const struct build_id *id, unsigned content, uint64_t fingerprint)
{
	struct entry entry = {.folder = (uint32_t)folder,
			      .next_id = none,
			      .next_name = none,
			      .fingerprint = fingerprint};
	size_t id_length = id ? id->length : 0, length = strlen(name) + 1;
	uint32_t number = (uint32_t)index->count;
	char *text;

	if (!grow(&index->entries, sizeof(entry), index->count, 1, FILES_MAX, &index->room))
		return false;
	text = add_text(index, 2 + id_length + length, &entry.text);
	if (!text)
		return false;
	text[0] = (char)content;
	text[1] = (char)id_length;
	if (id_length)
		memcpy(text + 2, id->bytes, id_length);
	memcpy(text + 2 + id_length, name, length);
	index->entries[index->count++] = entry;
	return (!id_length || link_id(index, number, id)) &&
	       (content & FILE_HAS_GNU_ID || link_name(index, number, file_base_name(name)));
}

bool file_index_add_other(struct file_index *index, uint64_t fingerprint)
{
	if (!grow(&index->others, sizeof(*index->others), index->other_count, 1, OTHERS_MAX,
		  &index->other_room))
		return false;
	index->others[index->other_count++] = fingerprint;
	return true;
}

/* ---- sealed ---- */

static int compare_numbers(uint64_t one, uint64_t other)
{
	return one < other ? -1 : one > other;
}

static int compare_others(const void *one, const void *other)
{
	return compare_numbers(*(const uint64_t *)one, *(const uint64_t *)other);
}

static int compare_entries(const void *one, const void *other, void *context)
{
	const struct entry *entries = context;

	return compare_numbers(entries[*(const uint32_t *)one].fingerprint,
			       entries[*(const uint32_t *)other].fingerprint);
}

static bool sort_entries(struct file_index *index)
{
	index->by_fingerprint = malloc((index->count + 1) * sizeof(*index->by_fingerprint));
	if (!index->by_fingerprint)
		return false;
	for (size_t i = 0; i < index->count; i++)
		index->by_fingerprint[i] = (uint32_t)i;
	qsort_r(index->by_fingerprint, index->count, sizeof(*index->by_fingerprint),
		compare_entries, index->entries);
	return true;
}

/* What was taken in advance goes back. */
static void trim(void *array, size_t size, size_t used, size_t *room)
{
	void **at = array, *moved = used ? realloc(*at, used * size) : NULL;

	if (!moved)
		return;
	*at = moved;
	*room = used;
}

bool file_index_seal(struct file_index *index)
{
	if (index->other_count)
		qsort(index->others, index->other_count, sizeof(*index->others), compare_others);
	return sort_entries(index);
}

void file_index_trim(struct file_index *index)
{
	trim(&index->entries, sizeof(*index->entries), index->count, &index->room);
	trim(&index->others, sizeof(*index->others), index->other_count, &index->other_room);
	trim(&index->text, 1, index->text_used, &index->text_room);
}

bool file_index_has_other(const struct file_index *index, uint64_t fingerprint)
{
	return index->other_count && bsearch(&fingerprint, index->others, index->other_count,
					     sizeof(*index->others), compare_others);
}

int64_t file_index_find(const struct file_index *index, uint64_t fingerprint)
{
	size_t low = 0, high = index->by_fingerprint ? index->count : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (index->entries[index->by_fingerprint[middle]].fingerprint < fingerprint)
			low = middle + 1;
		else
			high = middle;
	}
	if (index->by_fingerprint && low < index->count &&
	    index->entries[index->by_fingerprint[low]].fingerprint == fingerprint)
		return index->by_fingerprint[low];
	return FILE_INDEX_NONE;
}

/* ---- asking ---- */

static int64_t number_or_none(uint32_t number)
{
	return number == none ? FILE_INDEX_NONE : (int64_t)number;
}

int64_t file_index_find_id(const struct file_index *index, const struct build_id *id)
{
	uint64_t hash = id_hash(id);
	struct build_id there;

	HASH_TABLE_EACH(i, &index->by_id, hash) {
		id_of(index, &index->entries[i], &there);
		if (build_id_equal(&there, id))
			return i;
	}
	return FILE_INDEX_NONE;
}

int64_t file_index_find_guid(const struct file_index *index, const uint8_t first[FILE_GUID_BYTES])
{
	uint64_t hash = hash_bytes(first, FILE_GUID_BYTES, 0);
	struct build_id there;

	HASH_TABLE_EACH(i, &index->by_id, hash) {
		id_of(index, &index->entries[i], &there);
		if (there.length >= FILE_GUID_BYTES && !memcmp(there.bytes, first, FILE_GUID_BYTES))
			return i;
	}
	return FILE_INDEX_NONE;
}

int64_t file_index_next_id(const struct file_index *index, int64_t file)
{
	return number_or_none(index->entries[file].next_id);
}

int64_t file_index_find_name(const struct file_index *index, const char *base_name)
{
	uint64_t hash = name_hash(base_name);

	HASH_TABLE_EACH(i, &index->by_name, hash)
		if (!strcmp(file_base_name(name_of(index, &index->entries[i])), base_name))
			return i;
	return FILE_INDEX_NONE;
}

int64_t file_index_next_name(const struct file_index *index, int64_t file)
{
	return number_or_none(index->entries[file].next_name);
}

void file_index_view(const struct file_index *index, int64_t file, struct file_view *view)
{
	const struct entry *entry = &index->entries[file];

	view->folder = index->text + index->folders[entry->folder];
	view->name = name_of(index, entry);
	view->content = (uint8_t)index->text[entry->text];
	id_of(index, entry, &view->id);
}

size_t file_index_bytes(const struct file_index *index)
{
	size_t slots = (size_t)index->by_id.size + index->by_name.size;

	return sizeof(*index) + index->room * sizeof(*index->entries) +
	       index->folder_room * sizeof(*index->folders) +
	       index->other_room * sizeof(*index->others) + index->text_room +
	       (index->by_fingerprint ? index->count * sizeof(uint32_t) : 0) +
	       slots * (sizeof(struct hash_slot) + sizeof(uint32_t));
}

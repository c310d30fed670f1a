/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/executables.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file_content.h"
#include "bpf/unwind_rows.h"
#include "common/hash_table.h"
#include "common/log.h"
#include "node-agent/kernel/stranger_file.h"
#include "node-agent/processes/vdso.h"

#define OWNER_TRUSTED UINT64_MAX

enum {
	DESCRIPTORS_SPARED = 96, /* what the rest of the agent needs of RLIMIT_NOFILE */
	PAGE_BYTES = 4096,
	FORGOTTEN_MAX = 64,  /* that nobody has taken yet */
	FORGET_AFTER_S = 60, /* younger entries may be in a report that is being made */
	REOPEN_AFTER_S = 10,
};

struct entry {
	struct executable shown;
	char *name, *path;
	uint64_t owner; /* see executables_owner() */
	uint64_t content_hash;
	uint64_t used_s, reopen_s;
	unsigned segment_count;
	struct elf_segment *segments;
};

struct executables {
	size_t limit, descriptor_limit, descriptors;
	struct entry **slots; /* NULL: free */
	uint32_t slot_count;  /* ever used */
	uint32_t live, last_index, last_number;
	uint32_t forgotten[FORGOTTEN_MAX], forgotten_count; /* indices */
	struct hash_table by_content, by_gnu, by_index;
	uint64_t now_s;
	uint64_t refused, unnumbered;
};

struct executables *executables_new(size_t limit, struct error *err)
{
	struct executables *executables = calloc(1, sizeof(*executables));
	struct rlimit files = {0};

	if (!executables) {
		error_set(err, ERROR_MEMORY, "no memory for the table of executables");
		return NULL;
	}
	executables->limit = limit;
	executables->last_number = EXECUTABLE_ANONYMOUS - 1;
	executables->descriptor_limit = limit;
	if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur < limit + DESCRIPTORS_SPARED)
		executables->descriptor_limit = files.rlim_cur > 2 * DESCRIPTORS_SPARED
							? (size_t)files.rlim_cur -
								  DESCRIPTORS_SPARED
							: (size_t)files.rlim_cur / 4;
	hash_table_init(&executables->by_content, (uint32_t)limit);
	hash_table_init(&executables->by_gnu, (uint32_t)limit);
	hash_table_init(&executables->by_index, (uint32_t)limit);
	executables->slots = calloc(limit, sizeof(struct entry *));
	if (!executables->slots) {
		error_set(err, ERROR_MEMORY, "no memory for %zu executables", limit);
		executables_free(executables);
		return NULL;
	}
	return executables;
}

static void close_descriptor(struct executables *executables, struct entry *entry)
{
	if (entry->shown.fd < 0)
		return;
	close(entry->shown.fd);
	entry->shown.fd = -1;
	executables->descriptors--;
}

static void free_entry(struct executables *executables, struct entry *entry)
{
	close_descriptor(executables, entry);
	free(entry->name);
	free(entry->path);
	free(entry->segments);
	free(entry);
}

void executables_free(struct executables *executables)
{
	if (!executables)
		return;
	for (uint32_t i = 0; i < executables->slot_count; i++)
		if (executables->slots[i])
			free_entry(executables, executables->slots[i]);
	hash_table_release(&executables->by_content);
	hash_table_release(&executables->by_gnu);
	hash_table_release(&executables->by_index);
	free(executables->slots);
	free(executables);
}

void executables_set_last_number(struct executables *executables, uint32_t last)
{
	executables->last_number = last;
}

void executables_set_time(struct executables *executables, uint64_t time_ns)
{
	uint64_t now_s = time_ns / 1000000000;

	if (now_s > executables->now_s)
		executables->now_s = now_s;
}

static struct entry *entry_of(struct executables *executables, struct executable_ref ref)
{
	struct entry *entry;

	if (!ref.index || ref.slot >= executables->slot_count)
		return NULL;
	entry = executables->slots[ref.slot];
	if (!entry || entry->shown.index != ref.index)
		return NULL;
	entry->used_s = executables->now_s;
	return entry;
}

struct executable *executables_get(struct executables *executables, struct executable_ref ref)
{
	struct entry *entry = entry_of(executables, ref);

	return entry ? &entry->shown : NULL;
}

static uint32_t slot_by_index(const struct executables *executables, uint32_t index)
{
	uint64_t hash = hash_word(0, index);

	HASH_TABLE_EACH(slot, &executables->by_index, hash)
		if (executables->slots[slot]->shown.index == index)
			return slot;
	return HASH_TABLE_NONE;
}

struct executable *executables_by_index(struct executables *executables, uint32_t index)
{
	uint32_t slot = slot_by_index(executables, index);

	return slot == HASH_TABLE_NONE ? NULL : &executables->slots[slot]->shown;
}

bool executables_may_reopen(struct executables *executables, uint32_t index,
			    struct executable_ref *ref)
{
	uint32_t slot = slot_by_index(executables, index);
	struct entry *entry = slot == HASH_TABLE_NONE ? NULL : executables->slots[slot];

	if (!entry || entry->shown.is_raw || entry->path[0] != '/' ||
	    executables->now_s < entry->reopen_s)
		return false;
	entry->reopen_s = executables->now_s + REOPEN_AFTER_S;
	*ref = (struct executable_ref){slot, index};
	return true;
}

uint32_t executables_take_forgotten(struct executables *executables)
{
	if (!executables->forgotten_count)
		return 0;
	return executables->forgotten[--executables->forgotten_count];
}

bool executables_is_trusted(struct executables *executables, struct executable_ref ref)
{
	const struct entry *entry = entry_of(executables, ref);

	return entry && entry->owner == OWNER_TRUSTED;
}

uint32_t executables_time(const struct executables *executables)
{
	return (uint32_t)executables->now_s;
}

uint64_t executables_unnumbered(const struct executables *executables)
{
	return executables->unnumbered;
}

void executables_announced(struct executables *executables, uint32_t index)
{
	struct executable *executable = executables_by_index(executables, index);

	if (executable)
		executable->is_announced = true;
}

uint64_t executables_refused(const struct executables *executables)
{
	return executables->refused;
}

bool executables_address(struct executables *executables, struct executable_ref ref,
			 uint64_t file_offset, uint64_t *address)
{
	const struct entry *entry = entry_of(executables, ref);

	if (!entry)
		return false;
	if (entry->shown.is_raw) {
		*address = file_offset;
		return file_offset < entry->shown.limit;
	}
	return elf_segments_address(entry->segments, entry->segment_count, file_offset, address);
}

bool executables_shift(struct executables *executables, struct executable_ref ref,
		       uint64_t file_offset, uint64_t length, uint64_t *shift)
{
	const struct entry *entry = entry_of(executables, ref);
	const struct elf_segment *found = NULL;

	for (unsigned i = 0; entry && i < entry->segment_count; i++) {
		const struct elf_segment *segment = &entry->segments[i];

		if (segment->offset >= file_offset + length ||
		    segment->offset + segment->file_size <= file_offset ||
		    (segment->address - segment->offset) % PAGE_BYTES) /* nobody can map it */
			continue;
		if (found && found->is_executable && segment->is_executable &&
		    found->address - found->offset != segment->address - segment->offset)
			return false;
		if (!found || (segment->is_executable && !found->is_executable))
			found = segment;
	}
	if (!found)
		return false;
	*shift = found->address - found->offset;
	return true;
}

/* --- room --- */

static uint64_t gnu_hash(const struct build_id *gnu)
{
	return build_id_hash(gnu);
}

static void forget_entry(struct executables *executables, uint32_t slot)
{
	struct entry *entry = executables->slots[slot];

	hash_table_remove(&executables->by_content, entry->content_hash, slot);
	hash_table_remove(&executables->by_index, hash_word(0, entry->shown.index), slot);
	if (entry->shown.gnu.length)
		hash_table_remove(&executables->by_gnu, gnu_hash(&entry->shown.gnu), slot);
	if (executables->forgotten_count < FORGOTTEN_MAX)
		executables->forgotten[executables->forgotten_count++] = entry->shown.index;
	executables->slots[slot] = NULL;
	executables->live--;
	free_entry(executables, entry);
}

/* The entry used longest ago, or HASH_TABLE_NONE; a scan, but only when the table is full. */
static uint32_t least_used(const struct executables *executables, bool with_descriptor)
{
	uint32_t found = HASH_TABLE_NONE;
	uint64_t oldest = UINT64_MAX;

	for (uint32_t i = 0; i < executables->slot_count; i++) {
		const struct entry *entry = executables->slots[i];

		if (entry && entry->used_s < oldest && (!with_descriptor || entry->shown.fd >= 0)) {
			oldest = entry->used_s;
			found = i;
		}
	}
	return found;
}

static bool take_slot(struct executables *executables, uint32_t *slot)
{
	if (executables->live >= executables->limit) {
		uint32_t old = least_used(executables, false);

		if (old == HASH_TABLE_NONE ||
		    executables->slots[old]->used_s + FORGET_AFTER_S > executables->now_s)
			return false;
		forget_entry(executables, old);
		*slot = old;
		return true;
	}
	if (executables->slot_count < executables->limit) {
		*slot = executables->slot_count++;
		return true;
	}
	for (*slot = 0; executables->slots[*slot]; ++*slot)
		;
	return true;
}

static void keep_descriptor(struct executables *executables, struct entry *entry, int fd)
{
	if (executables->descriptors >= executables->descriptor_limit) {
		uint32_t old = least_used(executables, true);

		if (old != HASH_TABLE_NONE)
			close_descriptor(executables, executables->slots[old]);
	}
	entry->shown.fd = fd;
	entry->shown.sampled_s = executables->now_s;
	stranger_file_stat(fd, &entry->shown.st);
	executables->descriptors++;
}

void executables_close_idle(struct executables *executables)
{
	for (uint32_t i = 0; i < executables->slot_count; i++) {
		struct entry *entry = executables->slots[i];

		if (entry && entry->path[0] == '/' &&
		    entry->shown.sampled_s + EXECUTABLE_IDLE_S < executables->now_s)
			close_descriptor(executables, entry);
	}
}

/* --- entries --- */

/* Who may have written the file: the htlhash covers its ends only, so that a file that looks the
 * same may be another. Only what root alone can write is taken for what everybody else has. */
uint64_t executables_owner(const struct stat *st)
{
	return !st->st_uid && !(st->st_mode & (S_IWGRP | S_IWOTH)) ? OWNER_TRUSTED : st->st_uid;
}

static uint64_t content_hash(const struct executable_content *content, const char *name)
{
	uint64_t hash = hash_word(hash_word(content->base, content->owner),
				  build_id_hash(&content->gnu));

	/* The kernel's parts have no hash of their content: the name stands in. */
	if (content->htlhash.length)
		return hash_word(hash, build_id_hash(&content->htlhash));
	return hash_bytes(name, strlen(name), hash);
}

static bool is_content(const struct entry *entry, const struct executable_content *content,
		       const char *name)
{
	return entry->shown.base == content->base && entry->owner == content->owner &&
	       build_id_equal(&entry->shown.gnu, &content->gnu) &&
	       build_id_equal(&entry->shown.htlhash, &content->htlhash) &&
	       (content->htlhash.length || !strcmp(entry->name, name));
}

static const char *name_of(const struct executable_content *content)
{
	const char *slash;

	if (content->name)
		return content->name;
	slash = strrchr(content->path, '/');
	return slash ? slash + 1 : content->path;
}

static bool find_content(struct executables *executables, const struct executable_content *content,
			 struct executable_ref *found)
{
	const char *name = name_of(content);
	uint64_t hash = content_hash(content, name);

	HASH_TABLE_EACH(slot, &executables->by_content, hash) {
		struct entry *entry = executables->slots[slot];

		if (is_content(entry, content, name)) {
			*found = (struct executable_ref){slot, entry->shown.index};
			entry->used_s = executables->now_s;
			entry->shown.is_private &= content->is_private;
			return true;
		}
	}
	return false;
}

/* The range and offset of the first executable segment, and what addresses are computed from. */
static bool copy_image(struct entry *entry, const struct elf_image *image)
{
	struct executable *shown = &entry->shown;

	entry->segments = calloc(image->segment_count + 1, sizeof(*entry->segments));
	if (!entry->segments)
		return false;
	entry->segment_count = image->segment_count;
	memcpy(entry->segments, image->segments, image->segment_count * sizeof(*entry->segments));
	memcpy(shown->go_id, image->go_id, sizeof(shown->go_id));
	shown->has_go = image->has_go_pclntab || *image->go_id;
	shown->entry = image->entry;
	for (unsigned i = 0; i < image->segment_count; i++) {
		const struct elf_segment *segment = &image->segments[i];

		if (segment->is_executable) {
			shown->start = segment->address;
			shown->limit = segment->address + segment->memory_size;
			shown->file_offset = segment->offset;
			break;
		}
	}
	return true;
}

static struct entry *new_entry(const struct executable_content *content, const char *name)
{
	struct entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return NULL;
	entry->shown.fd = -1;
	entry->owner = content->owner;
	entry->name = strdup(name);
	entry->path = strdup(content->path);
	entry->shown.is_raw = content->is_raw;
	entry->shown.is_private = content->is_private;
	entry->shown.name = entry->name;
	entry->shown.path = entry->path;
	entry->shown.gnu = content->gnu;
	entry->shown.htlhash = content->htlhash;
	entry->shown.base = content->base;
	entry->shown.limit = content->limit;
	if (!entry->name || !entry->path ||
	    (content->image && !copy_image(entry, content->image))) {
		free(entry->name);
		free(entry->path);
		free(entry->segments);
		free(entry);
		return NULL;
	}
	return entry;
}

/* Numbers are not used again: rules that the kernel side has cached go by them. */
static bool has_number(struct executables *executables)
{
	if (executables->last_index < executables->last_number)
		return true;
	if (!executables->unnumbered++)
		log_warn("new files are not known any more",
			 "numbered=%" PRIu32
			 " why=\"no number is left\" until=the_agent_begins_anew",
			 executables->last_index);
	return false;
}

/* false: no room, memory or number. */
static bool add_content(struct executables *executables, const struct executable_content *content,
			struct executable_ref *found)
{
	const char *name = name_of(content);
	struct entry *entry = NULL;
	uint32_t slot;

	if (!has_number(executables) || !take_slot(executables, &slot) ||
	    !(entry = new_entry(content, name))) {
		executables->refused++;
		return false;
	}
	entry->shown.index = ++executables->last_index;
	entry->used_s = executables->now_s;
	entry->content_hash = content_hash(content, name);
	executables->slots[slot] = entry;
	executables->live++;
	if (!hash_table_add(&executables->by_content, entry->content_hash, slot) ||
	    !hash_table_add(&executables->by_index, hash_word(0, entry->shown.index), slot) ||
	    (entry->shown.gnu.length &&
	     !hash_table_add(&executables->by_gnu, gnu_hash(&entry->shown.gnu), slot))) {
		forget_entry(executables, slot);
		executables->refused++;
		return false;
	}
	*found = (struct executable_ref){slot, entry->shown.index};
	return true;
}

void executables_keep_open(struct executables *executables, struct executable_ref ref, int fd)
{
	struct entry *entry = entry_of(executables, ref);

	if (entry && entry->shown.fd < 0 && !entry->shown.is_raw)
		keep_descriptor(executables, entry, fd);
	else
		close(fd);
}

bool executables_add(struct executables *executables, const struct executable_content *content,
		     int fd, struct executable_ref *found)
{
	bool known = find_content(executables, content, found) ||
		     add_content(executables, content, found);

	if (fd >= 0 && known)
		executables_keep_open(executables, *found, fd);
	else if (fd >= 0)
		close(fd);
	return known;
}

bool executables_add_kernel(struct executables *executables, const char *name,
			    const struct build_id *gnu, enum address_base base, uint64_t limit,
			    struct executable_ref *found)
{
	const struct executable_content content = {
		.name = name,
		.path = "",
		.gnu = *gnu,
		.base = base,
		.owner = OWNER_TRUSTED,
		.limit = limit,
	};

	return executables_add(executables, &content, -1, found);
}

bool executables_add_vdso(struct executables *executables, struct executable_ref *found)
{
	struct executable_content content = {.path = "[vdso]", .owner = OWNER_TRUSTED};
	struct file_content read;
	int fd = vdso_open();

	if (fd < 0)
		return false;
	if (!file_content_read(fd, &read, NULL) || !read.is_elf) {
		close(fd);
		return false;
	}
	content.image = &read.image;
	content.gnu = read.image.gnu;
	content.htlhash = read.htlhash;
	return executables_add(executables, &content, fd, found);
}

static bool same_segments(const struct entry *a, const struct entry *b)
{
	if (a->segment_count != b->segment_count)
		return false;
	for (unsigned i = 0; i < a->segment_count; i++)
		if (a->segments[i].offset != b->segments[i].offset ||
		    a->segments[i].address != b->segments[i].address ||
		    a->segments[i].file_size != b->segments[i].file_size)
			return false;
	return true;
}

/* A stranger can give any file any build-id: only root's answers by it alone, and only one that is
 * not ambiguous. */
bool executables_find_gnu(struct executables *executables, const struct build_id *gnu,
			  struct executable_ref *found)
{
	uint64_t hash = gnu_hash(gnu);
	const struct entry *first = NULL;
	bool is_found = false;

	HASH_TABLE_EACH(slot, &executables->by_gnu, hash) {
		const struct entry *entry = executables->slots[slot];

		if (!build_id_equal(&entry->shown.gnu, gnu) || entry->shown.base != ADDRESS_ELF)
			continue;
		if (first && !same_segments(first, entry))
			return false;
		first = entry;
		if (entry->owner != OWNER_TRUSTED)
			continue;
		*found = (struct executable_ref){slot, entry->shown.index};
		is_found = true;
	}
	return is_found;
}

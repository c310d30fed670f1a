/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/ship/announced_modules.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/array.h"

enum {
	REQUEST_COST = 64 << 10, /* of an upload beside its bytes, in bytes */
	MADE_SIZE = 4 << 20,     /* the kernel's symbols as text */
};

void announced_modules_init(struct announced_modules *list)
{
	*list = (struct announced_modules){0};
	hash_table_init(&list->by_id, MODULES_MAX);
}

struct known_module *announced_modules_find(struct announced_modules *list,
					    const struct build_id *id)
{
	uint64_t hash = build_id_hash(id);

	HASH_TABLE_EACH(i, &list->by_id, hash)
		if (build_id_equal(&list->modules[i].module.id, id))
			return &list->modules[i];
	return NULL;
}

static bool make_room(struct announced_modules *list)
{
	return list->count < MODULES_MAX && ARRAY_GROW(list->modules, list->count, list->capacity);
}

static void close_module(struct ship_module *module)
{
	if (module->fd >= 0)
		close(module->fd);
	module->fd = -1;
}

static void release_module(struct ship_module *module)
{
	close_module(module);
	free(module->place.path);
	module->place.path = NULL;
}

/* A module's name stands in a line of text: one word of it. */
static void make_word(char *name)
{
	if (!*name)
		strcpy(name, "-");
	for (; *name; name++)
		if (!isgraph((unsigned char)*name))
			*name = '_';
}

/* The file's own size; a debug file that is sent in its place is often larger, but not by much. */
static uint64_t size_of(const struct ship_module *module)
{
	struct stat status;

	if (module->fd < 0)
		return MADE_SIZE;
	return !fstat(module->fd, &status) && status.st_size > 0 ? (uint64_t)status.st_size : 0;
}

/* It is announced at once if there was nothing to send so far. */
static void take_file(struct known_module *known, struct ship_module *module, int64_t now_ms)
{
	bool had_place = known->module.place.path;

	free(known->module.place.path);
	known->module.place = module->place;
	known->module.fd = module->fd;
	known->hold_until_ms = now_ms + HOLD_MS;
	module->place.path = NULL;
	module->fd = -1;
	if (had_place)
		return;
	known->size = size_of(&known->module);
	known->announce_ms = now_ms;
	known->announce_interval_ms = ANNOUNCE_FIRST_MS;
	known->tries = 0;
}

bool announced_modules_add(struct announced_modules *list, struct ship_module *module,
			   int64_t now_ms, bool *is_over_limit)
{
	struct known_module *known = announced_modules_find(list, &module->id), *added;

	*is_over_limit = false;
	if (known) {
		known->module.samples = module->samples;
		if (module->fd >= 0 && known->module.fd < 0 && !known->module.make_bytes &&
		    !known->is_sent) {
			take_file(known, module, now_ms);
			return true;
		}
		goto not_taken;
	}
	if (!module->id.length || !make_room(list) ||
	    !hash_table_add(&list->by_id, build_id_hash(&module->id), (uint32_t)list->count)) {
		*is_over_limit = true;
		goto not_taken;
	}
	added = &list->modules[list->count++];
	*added = (struct known_module){.module = *module,
				       .size = size_of(module),
				       .announce_ms = now_ms,
				       .announce_interval_ms = ANNOUNCE_FIRST_MS,
				       .hold_until_ms = now_ms + HOLD_MS};
	added->module.name[sizeof added->module.name - 1] = '\0';
	make_word(added->module.name);
	return true;
not_taken:
	release_module(module);
	return false;
}

void announced_modules_server_returned(struct announced_modules *list, int64_t now_ms)
{
	list->presence++;
	for (size_t i = 0; i < list->count; i++) {
		struct known_module *module = &list->modules[i];

		module->announce_ms = now_ms;
		module->announce_interval_ms = ANNOUNCE_FIRST_MS;
		module->tries = 0;
	}
}

static struct known_module *hottest_due(struct announced_modules *list, int64_t now_ms)
{
	struct known_module *best = NULL;

	for (size_t i = 0; i < list->count; i++) {
		struct known_module *module = &list->modules[i];

		if (module->announce_ms <= now_ms &&
		    (!best || module->module.samples > best->module.samples))
			best = module;
	}
	return best;
}

static void announce_one(struct known_module *module, int64_t now_ms, struct buffer *out)
{
	char hex[BUILD_ID_HEX];

	buffer_printf(out, "%s %s %s\n", build_id_format(&module->module.id, hex),
		      module->module.is_htlhash ? "htlhash" : "gnu", module->module.name);
	module->announce_ms = now_ms + module->announce_interval_ms;
	module->announce_interval_ms *= 2;
	if (module->announce_interval_ms > ANNOUNCE_MOST_MS)
		module->announce_interval_ms = ANNOUNCE_MOST_MS;
	module->announced_ms = now_ms;
}

size_t announced_modules_announce(struct announced_modules *list, int64_t now_ms,
				  struct buffer *out)
{
	struct known_module *module;
	size_t count = 0;

	while (count < ANNOUNCE_BATCH && (module = hottest_due(list, now_ms))) {
		announce_one(module, now_ms, out);
		count++;
	}
	return count;
}

void announced_modules_announce_again(struct announced_modules *list, int64_t announced_ms,
				      int64_t when_ms)
{
	for (size_t i = 0; i < list->count; i++) {
		struct known_module *module = &list->modules[i];

		if (module->announced_ms == announced_ms) {
			module->announce_ms = when_ms;
			module->announce_interval_ms = ANNOUNCE_FIRST_MS;
		}
	}
}

static bool may_upload(const struct announced_modules *list, const struct known_module *module,
		       int64_t now_ms)
{
	if (module->module.fd < 0 && !module->module.make_bytes && !module->module.place.path)
		return false;
	if (module->tries >= UPLOAD_TRIES)
		return false;
	return !module->uploaded_ms || module->uploaded_presence != list->presence ||
	       now_ms - module->uploaded_ms >= UPLOAD_AGAIN_MS;
}

static bool want_line(struct announced_modules *list, const char *line, size_t length,
		      int64_t now_ms)
{
	struct known_module *module;
	struct build_id id;

	while (length && isspace((unsigned char)line[length - 1]))
		length--;
	if (!build_id_parse(&id, line, length))
		return false;
	module = announced_modules_find(list, &id);
	if (!module || module->is_wanted || !may_upload(list, module, now_ms))
		return false;
	module->is_wanted = true;
	return true;
}

size_t announced_modules_take_wanted(struct announced_modules *list, struct bytes answer,
				     int64_t now_ms)
{
	const char *at = (const char *)answer.at, *end = at + answer.length;
	size_t wanted = 0;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t length = newline ? (size_t)(newline - at) : (size_t)(end - at);

		wanted += want_line(list, at, length, now_ms);
		at += length + 1;
	}
	return wanted;
}

static double samples_per_byte(const struct known_module *module)
{
	return (double)(module->module.samples + 1) / (double)(module->size + REQUEST_COST);
}

struct known_module *announced_modules_wanted(struct announced_modules *list)
{
	struct known_module *best = NULL;

	for (size_t i = 0; i < list->count; i++) {
		struct known_module *module = &list->modules[i];

		if (module->is_wanted &&
		    (!best || samples_per_byte(module) > samples_per_byte(best)))
			best = module;
	}
	return best;
}

int64_t announced_modules_let_go(struct announced_modules *list, int64_t now_ms)
{
	int64_t due = INT64_MAX;

	for (size_t i = 0; i < list->count; i++) {
		struct known_module *known = &list->modules[i];
		bool is_settled = known->uploaded_ms && !known->is_wanted;

		if (known->module.fd < 0 || !known->module.place.path || known->is_sent)
			continue;
		if (is_settled || known->hold_until_ms <= now_ms)
			close_module(&known->module);
		else if (known->hold_until_ms < due)
			due = known->hold_until_ms;
	}
	return due;
}

int64_t announced_modules_due_ms(const struct announced_modules *list)
{
	int64_t due = INT64_MAX;

	for (size_t i = 0; i < list->count; i++)
		if (list->modules[i].announce_ms < due)
			due = list->modules[i].announce_ms;
	return due;
}

void announced_modules_release(struct announced_modules *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->count; i++)
		release_module(&list->modules[i].module);
	free(list->modules);
	hash_table_release(&list->by_id);
	announced_modules_init(list);
}

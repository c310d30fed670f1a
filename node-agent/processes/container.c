/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/container.h"

#include <stdbool.h>
#include <string.h>

/* A borrowed run of characters. */
struct text {
	const char *at;
	size_t length;
};

static size_t hex_run(const char *at, const char *end)
{
	size_t length = 0;

	while (at + length < end && ((at[length] >= '0' && at[length] <= '9') ||
				     (at[length] >= 'a' && at[length] <= 'f')))
		length++;
	return length;
}

static size_t digit_run(const char *at, const char *end)
{
	size_t length = 0;

	while (at + length < end && at[length] >= '0' && at[length] <= '9')
		length++;
	return length;
}

static bool starts_with(struct text text, const char *prefix)
{
	size_t length = strlen(prefix);

	return text.length >= length && !memcmp(text.at, prefix, length);
}

static bool ends_with(struct text text, const char *suffix)
{
	size_t length = strlen(suffix);

	return text.length >= length && !memcmp(text.at + text.length - length, suffix, length);
}

static void copy_text(char *out, size_t room, const char *at, size_t length)
{
	if (length >= room)
		length = room - 1;
	memcpy(out, at, length);
	out[length] = '\0';
}

/* One path component: `<id>`, `<runtime>-<id>`, `<runtime>-<id>.scope`, `<id>-<digits>` for ECS. */
static void read_container_id(struct text part, struct container *container)
{
	const char *end = part.at + part.length, *id = part.at;
	size_t hex, digits;

	if (ends_with(part, ".scope"))
		end -= strlen(".scope");
	hex = hex_run(id, end);
	if (hex == 32 && id + hex < end && id[hex] == '-' &&
	    (digits = digit_run(id + hex + 1, end)) && id + hex + 1 + digits == end) {
		copy_text(container->id, sizeof(container->id), id, (size_t)(end - id));
		return;
	}
	if (end - id > 64 && end[-65] == '-')
		id = end - 64;
	if (end - id == 64 && hex_run(id, end) == 64)
		copy_text(container->id, sizeof(container->id), id, 64);
}

static bool is_uid(const char *at, size_t length)
{
	static const size_t dashes[] = {8, 13, 18, 23};

	if (length != 36)
		return false;
	for (size_t i = 0, dash = 0; i < length; i++) {
		if (dash < 4 && i == dashes[dash]) {
			dash++;
			if (at[i] != '-' && at[i] != '_')
				return false;
		} else if (!hex_run(at + i, at + i + 1)) {
			return false;
		}
	}
	return true;
}

/* `pod<uid>` or `kubepods-burstable-pod<uid>.slice`; static pods have 32 digits without dashes. */
static void read_pod(struct text part, struct container *container)
{
	const char *end = part.at + part.length, *uid = NULL;
	size_t length;

	if (ends_with(part, ".slice"))
		end -= strlen(".slice");
	if (starts_with(part, "pod"))
		uid = part.at + strlen("pod");
	else if (starts_with(part, "kubepods"))
		for (const char *at = part.at; at + 4 < end; at++)
			if (!memcmp(at, "-pod", 4))
				uid = at + 4;
	if (!uid)
		return;
	length = (size_t)(end - uid);
	if (!is_uid(uid, length) && !(length == 32 && hex_run(uid, end) == 32))
		return;
	copy_text(container->pod, sizeof(container->pod), uid, length);
	for (char *c = container->pod; *c; c++)
		if (*c == '_')
			*c = '-';
}

static void read_path(struct text path, struct container *container)
{
	const char *end = path.at + path.length;
	bool in_pods = false;

	for (const char *at = path.at; at < end;) {
		const char *slash = memchr(at, '/', (size_t)(end - at));
		struct text part = {at, (size_t)((slash ? slash : end) - at)};

		at += part.length + 1;
		read_container_id(part, container);
		in_pods |= starts_with(part, "kubepods");
		if (in_pods)
			read_pod(part, container);
		/* the innermost unit; user@1000.service holds its user's own units */
		if (ends_with(part, ".service") || ends_with(part, ".scope"))
			copy_text(container->unit, sizeof(container->unit), part.at, part.length);
		if (ends_with(part, ".service"))
			copy_text(container->service, sizeof(container->service), part.at,
				  part.length - strlen(".service"));
	}
	/* A container runs below its manager's unit, whose name says nothing about it. */
	if (container->id[0])
		container->service[0] = '\0';
}

enum line_rank { LINE_OTHER, LINE_SYSTEMD, LINE_UNIFIED };

static enum line_rank rank_of(struct text controllers)
{
	if (!controllers.length)
		return LINE_UNIFIED;
	return starts_with(controllers, "name=systemd") ? LINE_SYSTEMD : LINE_OTHER;
}

static bool read_line(struct text line, struct container *container, enum line_rank *rank)
{
	const char *end = line.at + line.length;
	const char *first = memchr(line.at, ':', line.length), *second;

	memset(container, 0, sizeof(*container));
	if (!first)
		return false;
	second = memchr(first + 1, ':', (size_t)(end - first - 1));
	if (!second)
		return false;
	*rank = rank_of((struct text){first + 1, (size_t)(second - first - 1)});
	copy_text(container->path, sizeof(container->path), second + 1, (size_t)(end - second - 1));
	read_path((struct text){second + 1, (size_t)(end - second - 1)}, container);
	return container->id[0] || container->pod[0] || container->service[0];
}

void container_read(const char *text, size_t length, struct container *container)
{
	struct container read, place = {.path = ""};
	const char *end = text + length;
	int best = -1, nearest = -1;

	memset(container, 0, sizeof(*container));
	for (const char *at = text; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		struct text line = {at, (size_t)((newline ? newline : end) - at)};
		enum line_rank rank = LINE_OTHER;
		bool says = read_line(line, &read, &rank);
		int score = (int)rank + (read.id[0] ? 8 : 0) + (read.pod[0] ? 4 : 0);
		int place_score = (int)rank + (read.path[0] && read.path[1] ? 4 : 0);

		at += line.length + 1;
		if (read.path[0] && place_score > nearest) {
			nearest = place_score;
			place = read;
		}
		if (says && score > best) {
			best = score;
			*container = read;
		}
	}
	memcpy(container->unit, place.unit, sizeof(container->unit));
	memcpy(container->path, place.path, sizeof(container->path));
}

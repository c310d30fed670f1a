/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/clock.h"
#include "node-agent/kernel/stranger_work.h"

static struct {
	uint64_t left, filled_ns, cut; /* bytes that are left to all */
	struct log_fault cuts;
} host = {.left = STRANGER_MAPS_SAVED};

static void refill(uint64_t now)
{
	const uint64_t passed_ms = (now - host.filled_ns) / 1000000;
	const uint64_t more = passed_ms < 60000 ? passed_ms * STRANGER_MAPS_A_SECOND / 1000
						: STRANGER_MAPS_SAVED;

	if (!passed_ms)
		return;
	host.filled_ns = now;
	host.left = host.left + more < STRANGER_MAPS_SAVED ? host.left + more : STRANGER_MAPS_SAVED;
}

void stranger_maps_begin(struct stranger_maps *maps, int directory)
{
	*maps = (struct stranger_maps){.directory = directory, .begin_ns = monotonic_ns()};
	refill(maps->begin_ns);
	maps->limit = host.left;
	if (maps->limit < STRANGER_MAPS_ALWAYS)
		maps->limit = STRANGER_MAPS_ALWAYS;
	if (maps->limit > STRANGER_MAPS_MOST)
		maps->limit = STRANGER_MAPS_MOST;
}

size_t stranger_maps_read(struct stranger_maps *maps, char *to, size_t room)
{
	const uint64_t left = maps->limit - maps->bytes;
	size_t got;

	room = room < STRANGER_MAPS_STEP ? room : STRANGER_MAPS_STEP;
	if (!left || maps->has_failed) {
		maps->is_cut |= !left;
		return 0;
	}
	got = stranger_maps_piece(maps->directory, !maps->is_open, to, room < left ? room : left,
				  &maps->error);
	maps->has_failed = !got && maps->error;
	maps->is_open = true;
	maps->bytes += got;
	host.left -= got < host.left ? got : host.left;
	return got;
}

/* More of the text, behind what is there. */
static bool fill(struct stranger_maps *maps)
{
	size_t got;

	if (!maps->text)
		maps->text = malloc(STRANGER_MAPS_STEP);
	if (!maps->text)
		return false;
	maps->length -= maps->at;
	memmove(maps->text, maps->text + maps->at, maps->length);
	maps->at = 0;
	got = stranger_maps_read(maps, maps->text + maps->length,
				 STRANGER_MAPS_STEP - maps->length);
	maps->length += got;
	return got > 0;
}

const char *stranger_maps_line(struct stranger_maps *maps, char *line, size_t room)
{
	const char *end = NULL;
	size_t length;

	do {
		if (maps->length > maps->at)
			end = memchr(maps->text + maps->at, '\n', maps->length - maps->at);
	} while (!end && fill(maps));
	length = end ? (size_t)(end - maps->text) - maps->at : maps->length - maps->at;
	if (!end && (!length || maps->is_cut || maps->has_failed))
		return NULL;
	memcpy(line, maps->text + maps->at, length < room ? length : room - 1);
	line[length < room ? length : room - 1] = '\0';
	maps->at += length + (end != NULL);
	return line;
}

void stranger_maps_end(struct stranger_maps *maps)
{
	free(maps->text);
	maps->text = NULL;
	maps->cost_ns = monotonic_ns() - maps->begin_ns;
	if (!maps->is_cut)
		return;
	host.cut++;
	log_fault_write(&host.cuts, maps->bytes, LOG_WARN,
			"a process has more mappings than are read",
			"pid=%u bytes=%" PRIu64 " read_ms=%" PRIu64, stranger_pid(maps->directory),
			maps->bytes, maps->cost_ns / 1000000);
}

uint32_t stranger_pid(int directory)
{
	char link[40], path[64];
	ssize_t length;

	snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
	length = readlink(link, path, sizeof path - 1);
	path[length > 0 ? length : 0] = '\0';
	return !strncmp(path, "/proc/", 6) ? (uint32_t)strtoul(path + 6, NULL, 10) : 0;
}

uint64_t stranger_maps_cut(void)
{
	return host.cut;
}

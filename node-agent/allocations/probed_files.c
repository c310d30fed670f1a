/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/allocations/probed_files.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "node-agent/kernel/stranger_file.h"
#include "node-agent/kernel/stranger_reader.h"
#include "node-agent/kernel/uprobe.h"
#include "node-agent/processes/process_files.h"

enum {
	RELEASE_MS = 1000,  /* after the last process of one that is probed */
	UNUSED_MS = 300000, /* what there is nothing to probe in is remembered for so long */
	ASKED_AT_ONCE = 32,
};

/* --- the table --- */

static bool is_probed(const struct probed_file *file)
{
	return file->state == FILE_PROBED || file->state == FILE_BY_PROCESS;
}

static void file_forget(struct probed_file *file)
{
	probed_files_close(file->probes);
	if (file->fd >= 0)
		close(file->fd);
	memset(file, 0, sizeof *file);
}

/* The kernel probes what lies below an overlay: to it the same file of an image is one in all its
 * containers, and two probes would tell everything twice. What lies below gives number and time. */
static dev_t device_of(int fd, const struct stat *st)
{
	return stranger_file_system(fd) == OVERLAYFS_SUPER_MAGIC ? 0 : st->st_dev;
}

static bool is_same(const struct probed_file *file, const struct stat *st)
{
	return file->number && file->inode == st->st_ino &&
	       file->changed.tv_sec == st->st_ctim.tv_sec &&
	       file->changed.tv_nsec == st->st_ctim.tv_nsec;
}

static bool file_is(const struct probed_file *file, dev_t device, const struct stat *st)
{
	return file->device == device && is_same(file, st);
}

/* An index; PROBED_FILES_MAX: no room. */
static uint32_t file_room(struct probed_files *files)
{
	uint32_t oldest = PROBED_FILES_MAX;

	for (uint32_t i = 0; i < files->count; i++)
		if (!files->items[i].number)
			return i;
	if (files->count < PROBED_FILES_MAX)
		return files->count++;
	for (uint32_t i = 0; i < files->count; i++)
		if (!files->items[i].processes &&
		    (oldest == PROBED_FILES_MAX ||
		     files->items[i].used_ms < files->items[oldest].used_ms))
			oldest = i;
	if (oldest == PROBED_FILES_MAX)
		files->refused++;
	else
		file_forget(&files->items[oldest]);
	return oldest;
}

static uint32_t file_find(const struct probed_files *files, dev_t device, const struct stat *st)
{
	for (uint32_t i = 0; i < files->count; i++)
		if (file_is(&files->items[i], device, st))
			return i;
	return PROBED_FILES_MAX;
}

/* What /proc/PID/exe is, if it has been met: most programs begin more than once. Nothing is opened,
 * and the kernel waits for nobody who serves a file system. */
static uint32_t find_met(const struct probed_files *files, uint32_t tgid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof path, "/proc/%u/exe", tgid);
	if (!stranger_file_stat_at(AT_FDCWD, path, 0, &st))
		return PROBED_FILES_MAX;
	for (uint32_t i = 0; i < files->count; i++)
		if (files->items[i].seen == st.st_dev && is_same(&files->items[i], &st))
			return i;
	return PROBED_FILES_MAX;
}

/* Takes fd. */
static uint32_t file_take(struct probed_files *files, int fd, const struct stat *st,
			  const char *name)
{
	const dev_t device = device_of(fd, st);
	uint32_t at = file_find(files, device, st);

	if (at != PROBED_FILES_MAX) {
		close(fd);
		return at;
	}
	at = file_room(files);
	if (at == PROBED_FILES_MAX) {
		close(fd);
		return at;
	}
	files->items[at] = (struct probed_file){
		.device = device,
		.seen = st->st_dev,
		.inode = st->st_ino,
		.changed = st->st_ctim,
		.fd = fd,
		.probes = {-1, -1, -1},
		.number = ++files->last_number,
		.used_ms = monotonic_ms(),
	};
	snprintf(files->items[at].name, sizeof files->items[at].name, "%.63s", name);
	return at;
}

/* Takes path_fd. What is no regular file may be anything: a device that does something when it is
 * opened. */
static uint32_t take_path(struct probed_files *files, int path_fd, const char *path)
{
	const char *name = strrchr(path, '/');
	struct stat st;
	int fd = -1;

	if (path_fd >= 0 && stranger_file_stat(path_fd, &st) && S_ISREG(st.st_mode))
		fd = stranger_reopen(path_fd);
	if (path_fd >= 0)
		close(path_fd);
	return fd < 0 ? PROBED_FILES_MAX : file_take(files, fd, &st, name ? name + 1 : path);
}

uint32_t probed_files_of_process(struct probed_files *files, uint32_t tgid)
{
	const uint32_t met = find_met(files, tgid);
	char target[4096] = "";
	int directory = met == PROBED_FILES_MAX ? process_directory_open("/proc", tgid, 0) : -1;
	int path_fd;

	if (directory < 0)
		return met;
	path_fd = stranger_open_at(directory, "exe"); /* the kernel's have none */
	if (path_fd >= 0 && !process_link_read(directory, "exe", target, sizeof target))
		target[0] = '\0';
	close(directory);
	return take_path(files, path_fd, target);
}

uint32_t probed_files_mapped(struct probed_files *files, uint32_t tgid, const char *path)
{
	int directory = process_directory_open("/proc", tgid, 0), path_fd;

	if (directory < 0)
		return PROBED_FILES_MAX;
	path_fd = process_open_path(directory, path);
	close(directory);
	return take_path(files, path_fd, path);
}

uint32_t probed_files_mapping(struct probed_files *files, uint32_t tgid, uint64_t start,
			      uint64_t end, const char *path)
{
	int directory = process_directory_open("/proc", tgid, 0), path_fd;

	if (directory < 0)
		return PROBED_FILES_MAX;
	path_fd = process_open_mapping(directory, start, end);
	if (path_fd < 0)
		path_fd = process_open_path(directory, path);
	close(directory);
	return take_path(files, path_fd, path);
}

void probed_files_use(struct probed_files *files, uint32_t at)
{
	files->items[at].processes++;
	files->items[at].used_ms = monotonic_ms();
}

void probed_files_unuse(struct probed_files *files, uint32_t at)
{
	files->items[at].processes--;
	files->items[at].used_ms = monotonic_ms();
}

/* --- questions --- */

void probed_files_ask(struct probed_files *files)
{
	for (uint32_t i = 0, asked = 0; i < files->count && asked < ASKED_AT_ONCE; i++) {
		struct probed_file *file = &files->items[i];

		asked += file->number && file->state == FILE_ASKED;
		if (!file->number || file->state != FILE_NEW)
			continue;
		if (!code_pages_ask_memory(files->pages, file->number, file->fd, NULL))
			return; /* later */
		file->state = FILE_ASKED;
		asked++;
	}
}

/* --- probes --- */

static const struct {
	enum memory_place_kind place;
	enum kernel_program program;
	bool is_free;
} rows[] = {
	{MEMORY_GO_TAKEN, KERNEL_PROGRAM_GO_TAKEN, false},
	{MEMORY_GO_GIVEN, KERNEL_PROGRAM_GO_GIVEN, true},
	{MEMORY_GO_TAKEN_BY_STACK, KERNEL_PROGRAM_GO_TAKEN_BY_STACK, false},
	{MEMORY_GO_GIVEN_BY_STACK, KERNEL_PROGRAM_GO_GIVEN_BY_STACK, true},
	{MEMORY_LIBRARY_TAKEN, KERNEL_PROGRAM_LIBRARY_TAKEN, false},
	{MEMORY_LIBRARY_GIVEN, KERNEL_PROGRAM_LIBRARY_GIVEN, true},
	{MEMORY_LIBRARY_BATCH, KERNEL_PROGRAM_LIBRARY_BATCH, false},
};

/* Those that give first: what is given back without having been taken counts nowhere. The last one
 * is what makes a library tell anything. */
static void find_spots(const struct probed_files *files, struct probed_file *file,
		       const struct memory_places *places)
{
	for (int i = (int)(sizeof rows / sizeof *rows) - 1; i >= 0; i--) {
		const struct memory_place *place = memory_place_find(places, rows[i].place);
		int program = capture_program(files->capture, rows[i].program);

		if (!place || program < 0 || file->spot_count == PROBED_FILE_PROBES ||
		    (rows[i].is_free && !files->wants_frees))
			continue;
		file->spots[file->spot_count++] = (struct probe_spot){
			.at = place->at, .semaphore = place->semaphore, .program = program};
	}
}

/* tgid 0: in all processes. */
static bool open_probes(const struct probed_file *file, int fd, uint32_t tgid,
			int probes[PROBED_FILE_PROBES])
{
	struct error err = {0};

	for (uint32_t i = 0; i < file->spot_count; i++) {
		const struct probe_spot *spot = &file->spots[i];

		probes[i] = tgid ? uprobe_open_process(fd, spot->at, tgid, spot->program, &err)
				 : uprobe_open(fd, spot->at, spot->semaphore, spot->program, &err);
		if (probes[i] >= 0)
			continue;
		log_warn("program not probed", "program=\"%s\" why=\"%s\"", file->name,
			 err.message);
		probed_files_close(probes);
		return false;
	}
	return true;
}

uint32_t probed_files_answer(struct probed_files *files, uint32_t number,
			     const struct memory_places *places)
{
	struct probed_file *file = NULL;
	const struct memory_place *rate;
	uint32_t at;

	for (at = 0; at < files->count && !file; at++)
		if (files->items[at].number == number)
			file = &files->items[at];
	if (!file || file->state != FILE_ASKED)
		return PROBED_FILES_MAX;
	file->state = FILE_NONE;
	if (places && places->count > 1 && places->items[0].kind == MEMORY_BASE) {
		rate = memory_place_find(places, MEMORY_GO_RATE);
		file->base = places->items[0].at;
		file->rate = rate ? rate->at : 0;
		find_spots(files, file, places);
		file->state = open_probes(file, file->fd, 0, file->probes) ? FILE_PROBED
									   : FILE_FAILED;
	}
	files->failed += file->state == FILE_FAILED;
	close(file->fd);
	file->fd = -1;
	if (file->state == FILE_PROBED)
		log_debug("program probed", "program=\"%s\"", file->name);
	return at - 1;
}

void probed_files_split(struct probed_files *files, uint32_t at)
{
	probed_files_close(files->items[at].probes);
	files->items[at].state = FILE_BY_PROCESS;
}

bool probed_files_open_for(struct probed_files *files, uint32_t at, uint32_t tgid,
			   int probes[PROBED_FILE_PROBES])
{
	int directory = process_directory_open("/proc", tgid, 0), path_fd = -1, fd = -1;
	const struct probed_file *file = &files->items[at];
	struct stat st;
	bool ok;

	if (directory >= 0)
		path_fd = stranger_open_at(directory, "exe");
	if (path_fd >= 0 && stranger_file_stat(path_fd, &st) && S_ISREG(st.st_mode))
		fd = stranger_reopen(path_fd);
	ok = fd >= 0 && file_is(file, device_of(fd, &st), &st) &&
	     open_probes(file, fd, tgid, probes);
	if (fd >= 0)
		close(fd);
	if (path_fd >= 0)
		close(path_fd);
	if (directory >= 0)
		close(directory);
	return ok;
}

void probed_files_close(int probes[PROBED_FILE_PROBES])
{
	for (int i = 0; i < PROBED_FILE_PROBES; i++) {
		uprobe_close(probes[i]);
		probes[i] = -1;
	}
}

/* --- those that nobody has --- */

static bool is_over(const struct probed_file *file, int64_t now)
{
	const bool holds = is_probed(file) || file->fd >= 0;

	return file->number && !file->processes &&
	       now - file->used_ms >= (holds ? RELEASE_MS : UNUSED_MS);
}

void probed_files_tidy(struct probed_files *files, int64_t now)
{
	for (uint32_t i = 0; i < files->count; i++)
		if (is_over(&files->items[i], now))
			file_forget(&files->items[i]);
}

uint32_t probed_files_now(const struct probed_files *files)
{
	uint32_t probed = 0;

	for (uint32_t i = 0; i < files->count; i++)
		probed += files->items[i].number && is_probed(&files->items[i]);
	return probed;
}

void probed_files_free(struct probed_files *files)
{
	if (!files)
		return;
	for (uint32_t i = 0; i < files->count; i++)
		if (files->items[i].number)
			file_forget(&files->items[i]);
	free(files);
}

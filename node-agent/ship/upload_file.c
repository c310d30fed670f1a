/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/ship/upload_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "node-agent/kernel/stranger_file.h"
#include "node-agent/ship/debug_file.h"
#include "node-agent/ship/thread.h"

enum {
	MADE_BYTES_MAX = 64 << 20, /* the kernel's symbols as text are about 5 MiB */
	STOP_MS = 500,             /* for the thread to notice */
	OPEN_MS = 30 * 1000,       /* then its file system does not answer */
};
#define UPLOAD_MAX ((uint64_t)2 << 30)

enum opening { OPENING_NOTHING, OPENING, OPENING_DONE };

struct file_opener {
	struct thread thread;

	/* --- under the lock --- */
	enum opening state;
	bool is_interrupted;

	/* --- the thread's while OPENING, else the caller's --- */
	struct ship_module module;
	struct upload_file file;
	bool is_open;
	struct error err;
};

/* --- with all rights --- */

static bool open_file(const struct ship_module *module, struct upload_file *file, struct error *err)
{
	struct stat status;

	file->fd = module->is_htlhash || module->fd < 0
			   ? -1
			   : debug_file_open(DEBUG_FILE_ROOT, &module->id, module->fd,
					     &file->refused);
	file->is_debug_file = file->fd >= 0;
	if (file->fd < 0 && module->fd >= 0)
		file->fd = fcntl(module->fd, F_DUPFD_CLOEXEC, 0);
	if (file->fd < 0) {
		if (!module->make_bytes ||
		    !module->make_bytes(module->make_context, &file->bytes, err))
			return err->kind ? false
					 : error_set(err, ERROR_NOT_FOUND, "%s",
						     module->place.path
							     ? "the file is gone, or changed"
							     : "nothing to send");
		file->length = file->bytes.length;
		return file->length ? true : error_set(err, ERROR_NOT_FOUND, "nothing to send");
	}
	if (fstat(file->fd, &status) < 0)
		return error_set_system(err, errno, "look at the file");
	if (!file->is_debug_file && !stranger_file_may_send(&status)) {
		file->refused++;
		return error_set(err, ERROR_UNSUPPORTED,
				 "not everybody who may run it may read it");
	}
	if (!S_ISREG(status.st_mode) || !debug_file_is_elf(file->fd))
		return error_set(err, ERROR_FORMAT, "it is not an ELF file");
	file->length = (uint64_t)status.st_size;
	if (file->length > UPLOAD_MAX)
		return error_set(err, ERROR_LIMIT, "it is larger than 2 GiB");
	return true;
}

/* Its descriptor was closed a while ago. */
static void open_place(struct ship_module *module)
{
	if (module->fd < 0 && module->place.path)
		module->fd = stranger_place_open(&module->place);
}

static void run(void *context)
{
	struct file_opener *opener = context;

	thread_lock(&opener->thread);
	while (!thread_is_stopping(&opener->thread)) {
		if (opener->state != OPENING) {
			thread_wait(&opener->thread, INT64_MAX);
			continue;
		}
		thread_unlock(&opener->thread);
		open_place(&opener->module);
		opener->is_open = open_file(&opener->module, &opener->file, &opener->err);
		if (opener->module.fd >= 0)
			close(opener->module.fd);
		free(opener->module.place.path);
		thread_lock(&opener->thread);
		opener->state = OPENING_DONE;
		thread_wake(&opener->thread);
	}
	thread_unlock(&opener->thread);
}

/* --- the door --- */

void upload_file_release(struct upload_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
	buffer_release(&file->bytes);
}

static void begin(struct file_opener *opener, const struct ship_module *module)
{
	opener->module = *module;
	if (module->fd >= 0) /* its own: it may go on when nobody waits any more */
		opener->module.fd = fcntl(module->fd, F_DUPFD_CLOEXEC, 0);
	if (module->place.path)
		opener->module.place.path = strdup(module->place.path);
	opener->file = (struct upload_file){.fd = -1};
	buffer_init(&opener->file.bytes, MADE_BYTES_MAX);
	opener->err = (struct error){0};
	opener->state = OPENING;
	thread_wake(&opener->thread);
}

static void wait_until(struct file_opener *opener, int64_t until_ms)
{
	while (opener->state == OPENING && !opener->is_interrupted && monotonic_ms() < until_ms)
		thread_wait(&opener->thread, until_ms);
}

bool file_opener_open(struct file_opener *opener, const struct ship_module *module,
		      struct upload_file *file, struct error *err)
{
	const int64_t until_ms = monotonic_ms() + OPEN_MS;
	bool ok = false, has_begun;

	*file = (struct upload_file){.fd = -1};
	buffer_init(&file->bytes, 0);
	thread_lock(&opener->thread);
	wait_until(opener, until_ms);
	if (opener->state == OPENING_DONE) { /* one that nobody waited for any more */
		upload_file_release(&opener->file);
		opener->state = OPENING_NOTHING;
	}
	has_begun = opener->state == OPENING_NOTHING && !opener->is_interrupted;
	if (has_begun)
		begin(opener, module);
	wait_until(opener, until_ms);
	if (has_begun && opener->state == OPENING_DONE) {
		*file = opener->file;
		ok = opener->is_open;
		*err = opener->err;
		opener->state = OPENING_NOTHING;
	} else if (has_begun && !opener->is_interrupted) {
		error_set(err, ERROR_LIMIT, "its file system does not answer");
	} else {
		error_set(err, ERROR_BUSY, "%s",
			  opener->is_interrupted ? "it is to end"
						 : "another's file system does not answer");
	}
	thread_unlock(&opener->thread);
	return ok;
}

void file_opener_interrupt(struct file_opener *opener)
{
	if (!opener)
		return;
	thread_lock(&opener->thread);
	opener->is_interrupted = true;
	thread_wake(&opener->thread);
	thread_unlock(&opener->thread);
}

struct file_opener *file_opener_start(struct error *err)
{
	struct file_opener *opener = calloc(1, sizeof *opener);

	if (!opener) {
		error_set(err, ERROR_MEMORY, "no memory to open files");
		return NULL;
	}
	if (thread_start(&opener->thread, "open", NULL, run, opener, err))
		return opener;
	file_opener_stop(opener);
	return NULL;
}

bool file_opener_stop(struct file_opener *opener)
{
	if (!opener)
		return true;
	if (!thread_stop(&opener->thread, STOP_MS))
		return false; /* stuck in a file system: the process ends, and with it this */
	if (opener->state == OPENING_DONE)
		upload_file_release(&opener->file);
	thread_release(&opener->thread);
	free(opener);
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/sources/file_opener.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/elf_image.h"
#include "symbol-server/symbolize/sources/public_file.h"
#include "symbol-server/symbolize/sources/symbol_directories.h"

enum {
	STOP_WAIT_SECONDS = 2,
	REFUSED_MAX = 4096, /* ids that are remembered while nothing is answered */
};

struct job {
	struct job *next;
	bool has_id, is_done, is_abandoned; /* abandoned: the thread frees it */
	bool asks_public, is_public;
	struct build_id id;
	int fd;
	char path[PATH_MAX];
};

struct file_opener {
	char directory[PATH_MAX];
	void (*late)(void *context, const struct build_id *id);
	void *context;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake, done;
	struct job *first, **last;
	struct build_id *refused;
	size_t refused_count;
	bool is_held_up, stops, has_ended;
	bool is_orphan; /* nobody joins the thread: it cleans up */
};

/* ---- the thread ---- */

static int open_below(const char *directory, const char *path)
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
	int at = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

	if (at < 0)
		return -1;
	fd = (int)syscall(SYS_openat2, at, path, &how, sizeof(how));
	if (fd < 0 && errno == ENOSYS) /* before 5.6: links are then not followed at all */
		fd = openat(at, path, (int)how.flags | O_NOFOLLOW);
	close(at);
	return fd;
}

static bool has_id(int fd, const struct build_id *id)
{
	struct elf_image *image = malloc(sizeof(*image));
	bool ok = image && elf_image_read(fd, image, NULL) && symbol_file_has_id(fd, image, id);

	free(image);
	return ok;
}

static int open_job(const struct file_opener *opener, struct job *job)
{
	int fd = open_below(opener->directory, job->path);
	struct stat stat;

	if (fd < 0)
		return -1;
	if (!fstat(fd, &stat) && S_ISREG(stat.st_mode) && (!job->has_id || has_id(fd, &job->id))) {
		job->is_public = job->asks_public && public_file_is(fd, opener->directory);
		return fd;
	}
	close(fd);
	return -1;
}

/* Lock held; it is let go meanwhile. What was asked for and not waited for can be had now. */
static void tell_late(struct file_opener *opener, struct job *job)
{
	size_t count = opener->is_held_up ? 0 : opener->refused_count;
	struct build_id *refused = count ? opener->refused : NULL;
	bool stops = opener->stops;

	if (refused) {
		opener->refused = NULL;
		opener->refused_count = 0;
	}
	pthread_mutex_unlock(&opener->lock);
	if (job->is_abandoned && job->fd >= 0 && job->has_id && !stops)
		opener->late(opener->context, &job->id);
	if (job->is_abandoned && job->fd >= 0)
		close(job->fd);
	for (size_t i = 0; i < count && !stops; i++)
		opener->late(opener->context, &refused[i]);
	free(refused);
	pthread_mutex_lock(&opener->lock);
}

static void opener_free(struct file_opener *opener)
{
	for (struct job *job = opener->first, *next; job; job = next) {
		next = job->next;
		free(job);
	}
	pthread_cond_destroy(&opener->wake);
	pthread_cond_destroy(&opener->done);
	pthread_mutex_destroy(&opener->lock);
	free(opener->refused);
	free(opener);
}

static void *opener_thread(void *context)
{
	struct file_opener *opener = context;
	bool is_orphan;

	pthread_mutex_lock(&opener->lock);
	while (!opener->stops) {
		struct job *job = opener->first;

		if (!job) {
			pthread_cond_wait(&opener->wake, &opener->lock);
			continue;
		}
		opener->first = job->next;
		if (!opener->first)
			opener->last = &opener->first;
		pthread_mutex_unlock(&opener->lock);
		job->fd = open_job(opener, job);
		pthread_mutex_lock(&opener->lock);
		job->is_done = true;
		if (!opener->first)
			opener->is_held_up = false;
		pthread_cond_broadcast(&opener->done);
		if (job->is_abandoned) {
			tell_late(opener, job);
			free(job);
		}
	}
	opener->has_ended = true;
	is_orphan = opener->is_orphan;
	pthread_mutex_unlock(&opener->lock);
	if (is_orphan)
		opener_free(opener);
	return NULL;
}

/* ---- who asks ---- */

static void remember_refused(struct file_opener *opener, const struct build_id *id)
{
	if (!opener->refused)
		opener->refused = calloc(REFUSED_MAX, sizeof(*opener->refused));
	if (opener->refused && id && opener->refused_count < REFUSED_MAX)
		opener->refused[opener->refused_count++] = *id;
}

static bool wait_for(struct file_opener *opener, const struct job *job, int64_t until_ms)
{
	struct timespec when = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000};

	while (!job->is_done)
		if (pthread_cond_timedwait(&opener->done, &opener->lock, &when) == ETIMEDOUT)
			break;
	return job->is_done;
}

int file_opener_open(struct file_opener *opener, const char *path, const struct build_id *id,
		     bool *is_public)
{
	int64_t until_ms = monotonic_ms() + FILE_OPENER_WAIT_MS;
	struct job *job = calloc(1, sizeof(*job));
	bool is_done = false;
	int fd = -1;

	if (!job)
		return -1;
	job->has_id = id != NULL;
	if (id)
		job->id = *id;
	job->fd = -1;
	job->asks_public = is_public != NULL;
	snprintf(job->path, sizeof(job->path), "%s", path);
	pthread_mutex_lock(&opener->lock);
	if (opener->is_held_up) {
		remember_refused(opener, id);
		is_done = true; /* as if: it was never asked for */
	} else {
		*opener->last = job;
		opener->last = &job->next;
		pthread_cond_signal(&opener->wake);
		is_done = wait_for(opener, job, until_ms);
		if (is_done && is_public)
			*is_public = job->is_public;
		if (is_done)
			fd = job->fd;
		else
			opener->is_held_up = job->is_abandoned = true;
	}
	pthread_mutex_unlock(&opener->lock);
	if (is_done)
		free(job);
	return fd;
}

bool file_opener_answers(struct file_opener *opener)
{
	bool answers;

	pthread_mutex_lock(&opener->lock);
	answers = !opener->is_held_up;
	pthread_mutex_unlock(&opener->lock);
	return answers;
}

/* ---- life ---- */

struct file_opener *file_opener_start(const char *directory,
				      void (*late)(void *context, const struct build_id *id),
				      void *context, struct error *err)
{
	struct file_opener *opener = calloc(1, sizeof(*opener));
	pthread_condattr_t clock;
	int rc;

	if (!opener) {
		error_set(err, ERROR_MEMORY, "no memory to open files of '%s'", directory);
		return NULL;
	}
	snprintf(opener->directory, sizeof(opener->directory), "%s", directory);
	opener->late = late;
	opener->context = context;
	opener->last = &opener->first;
	pthread_mutex_init(&opener->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&opener->wake, &clock);
	pthread_cond_init(&opener->done, &clock);
	pthread_condattr_destroy(&clock);
	rc = pthread_create(&opener->thread, NULL, opener_thread, opener);
	if (!rc)
		return opener;
	error_set_system(err, rc, "start a thread for '%s'", directory);
	free(opener);
	return NULL;
}

void file_opener_stop(struct file_opener *opener)
{
	struct timespec until;
	pthread_t thread;
	bool is_orphan;

	if (!opener)
		return;
	thread = opener->thread;
	pthread_mutex_lock(&opener->lock);
	opener->stops = true;
	pthread_cond_broadcast(&opener->wake);
	pthread_mutex_unlock(&opener->lock);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += STOP_WAIT_SECONDS;
	if (pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until)) {
		pthread_mutex_lock(&opener->lock);
		opener->is_orphan = is_orphan = !opener->has_ended;
		pthread_mutex_unlock(&opener->lock);
		if (is_orphan) {
			pthread_detach(thread);
			return;
		}
		pthread_join(thread, NULL);
	}
	opener_free(opener);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/directories.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_S = 2 };

static bool check(const char *path, int mode, struct error *err)
{
	struct stat status;

	if (stat(path, &status))
		return error_set_system(err, errno, "use directory %s", path);
	if (!S_ISDIR(status.st_mode))
		return error_set_system(err, ENOTDIR, "use directory %s", path);
	return !access(path, mode) || error_set_system(err, errno, "use directory %s", path);
}

/* A path that is mistyped, or whose volume is not mounted, would begin an empty store. */
bool directory_make(const char *path, bool *is_new, struct error *err)
{
	*is_new = !mkdir(path, 0700);
	if (!*is_new && errno == ENOENT)
		return error_set(err, ERROR_OPTION,
				 "make directory %s: the directory it is to lie in is not there; "
				 "is the path right, is its volume mounted?",
				 path);
	if (!*is_new && errno != EEXIST)
		return error_set_system(err, errno, "make directory %s", path);
	return check(path, R_OK | W_OK | X_OK, err);
}

struct asking {
	pthread_mutex_t lock;
	pthread_cond_t answered;
	char *path;
	struct error err;
	bool ok, is_over, is_left; /* whoever comes second frees it */
};

static void free_asking(struct asking *asking)
{
	free(asking->path);
	free(asking);
}

static void *ask(void *context)
{
	struct asking *asking = context;
	struct error err = {0};
	bool ok = check(asking->path, R_OK | X_OK, &err), is_left;

	pthread_mutex_lock(&asking->lock);
	asking->ok = ok;
	asking->err = err;
	asking->is_over = true;
	is_left = asking->is_left;
	pthread_cond_signal(&asking->answered);
	pthread_mutex_unlock(&asking->lock);
	if (is_left)
		free_asking(asking);
	return NULL;
}

static bool wait_for_answer(struct asking *asking, struct error *err)
{
	struct timespec until;
	bool ok = true, is_over;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ANSWER_S;
	pthread_mutex_lock(&asking->lock);
	while (!asking->is_over &&
	       !pthread_cond_clockwait(&asking->answered, &asking->lock, CLOCK_MONOTONIC, &until))
		;
	is_over = asking->is_over;
	asking->is_left = true;
	if (is_over && !asking->ok) {
		*err = asking->err;
		ok = false;
	}
	pthread_mutex_unlock(&asking->lock);
	if (is_over)
		free_asking(asking);
	return ok;
}

static bool is_there(const char *path, struct error *err)
{
	struct asking *asking = calloc(1, sizeof *asking);
	pthread_t thread;

	if (!asking || !(asking->path = strdup(path))) {
		free(asking);
		return error_set(err, ERROR_MEMORY, "no memory to look at a directory");
	}
	pthread_mutex_init(&asking->lock, NULL);
	pthread_cond_init(&asking->answered, NULL);
	if (pthread_create(&thread, NULL, ask, asking)) {
		free_asking(asking);
		return check(path, R_OK | X_OK, err);
	}
	pthread_detach(thread);
	return wait_for_answer(asking, err);
}

bool directories_are_there(const struct option_list *paths, struct error *err)
{
	for (size_t i = 0; i < paths->count; i++)
		if (!is_there(paths->texts[i], err))
			return error_prefix(err, "--symbol-dir");
	return true;
}

uint64_t directory_share(const char *path, unsigned percent)
{
	struct statvfs status;

	if (statvfs(path, &status))
		return 0;
	return (uint64_t)status.f_blocks * status.f_frsize / 100 * percent;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/kernel/lacks.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/log.h"

enum { DESCRIPTORS_FEW = 8 }; /* a question to the parser takes some */

#define LACK_NAME(name_, sentence_)     "lacks." #name_,
#define LACK_SENTENCE(name_, sentence_) sentence_,
const char *const lack_names[LACK_COUNT] = {LACKS(LACK_NAME)};
static const char *const sentences[LACK_COUNT] = {LACKS(LACK_SENTENCE)};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct log_fault faults[LACK_COUNT];
static uint64_t times[LACK_COUNT];

void lack_note(enum lack lack, const char *why)
{
	pthread_mutex_lock(&lock);
	if (why) {
		times[lack]++;
		log_fault_write(&faults[lack], 0, LOG_WARN, "agent lacks something",
				"what=%s why=\"%s\" so=\"%s\"", strchr(lack_names[lack], '.') + 1,
				why, sentences[lack]);
	} else {
		log_fault_over(&faults[lack], "agent lacks something");
	}
	pthread_mutex_unlock(&lock);
}

uint64_t lack_times(enum lack lack)
{
	uint64_t count;

	pthread_mutex_lock(&lock);
	count = times[lack];
	pthread_mutex_unlock(&lock);
	return count;
}

void lack_look_at_descriptors(void)
{
	struct rlimit limit;
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0), error = fd < 0 ? errno : 0;

	if (fd >= 0)
		close(fd);
	if (fd >= 0 && !getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	    (uint64_t)fd + DESCRIPTORS_FEW >= limit.rlim_cur)
		error = EMFILE;
	if (!error || error == EMFILE || error == ENFILE)
		lack_note(LACK_descriptors, error ? strerror(error) : NULL);
}

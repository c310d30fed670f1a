/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/import.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/gzip.h"
#include "common/log.h"
#include "symbol-server/api/known_modules.h"
#include "symbol-server/ingest/ingest.h"

enum { FILE_BYTES = 256 << 20, READ_BYTES = 1 << 16 };
#define DECODER_BYTES ((size_t)1 << 30)

struct wait {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_done, accepted;
	struct error err;
};

static bool read_all(const char *path, struct buffer *out, struct error *err)
{
	FILE *file = fopen(path, "rb");
	size_t got = 1;

	if (!file)
		return error_set_system(err, errno, "open %s", path);
	while (got && !out->failed) {
		uint8_t *room = buffer_reserve(out, READ_BYTES);

		got = room ? fread(room, 1, READ_BYTES, file) : 0;
		out->length += got;
	}
	if (ferror(file))
		error_set_system(err, errno, "read %s", path);
	else if (out->failed)
		error_set(err, ERROR_LIMIT, "%s is larger than %d MiB", path, FILE_BYTES >> 20);
	fclose(file);
	return err->kind == ERROR_NONE;
}

static bool read_file(const char *path, struct buffer *out, struct error *err)
{
	struct buffer inflated;

	if (!read_all(path, out, err))
		return false;
	if (out->length < 2 || out->bytes[0] != 0x1f || out->bytes[1] != 0x8b)
		return true;
	buffer_init(&inflated, FILE_BYTES);
	if (!gzip_inflate(out->bytes, out->length, &inflated, err)) {
		buffer_release(&inflated);
		return error_prefix(err, "%s", path);
	}
	buffer_release(out);
	*out = inflated;
	return true;
}

static void stored(void *context, bool accepted, const struct error *err)
{
	struct wait *wait = context;

	pthread_mutex_lock(&wait->lock);
	wait->is_done = true;
	wait->accepted = accepted;
	if (err)
		wait->err = *err;
	pthread_cond_signal(&wait->changed);
	pthread_mutex_unlock(&wait->lock);
}

static bool store(struct api *api, const struct sample_batch *batch, unsigned *duplicates,
		  struct error *err)
{
	struct wait wait = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

	if (!samples_add(api->samples, batch, stored, &wait, duplicates, err))
		return false;
	pthread_mutex_lock(&wait.lock);
	while (!wait.is_done)
		pthread_cond_wait(&wait.changed, &wait.lock);
	pthread_mutex_unlock(&wait.lock);
	if (!wait.accepted)
		*err = wait.err;
	return wait.accepted;
}

static void tell(const char *path, const struct sample_batch *batch,
		 const struct ingest_rejects *rejects, unsigned duplicates)
{
	unsigned refused = rejects->profiles + batch->refusals->profiles;
	const char *reason = rejects->profiles ? rejects->message : batch->refusals->sentence;
	uint64_t samples = 0;

	for (uint32_t i = 0; i < batch->sample_count; i++)
		samples += batch->samples[i].samples;
	log_info("imported", "file=\"%s\" profiles=%u samples=%llu duplicates=%u refused=%u%s%s%s",
		 path, batch->profile_count, (unsigned long long)samples, duplicates, refused,
		 refused ? " reason=\"" : "", refused ? reason : "", refused ? "\"" : "");
}

bool api_import(struct api *api, const char *path, struct error *err)
{
	int64_t now_ms = unix_time_ms();
	struct ingest_rejects rejects = {0};
	struct batch_refusals refusals = {0};
	struct sample_batch batch = {0};
	unsigned duplicates = 0;
	struct buffer bytes;
	struct arena arena;
	bool ok = false;

	buffer_init(&bytes, FILE_BYTES);
	arena_init(&arena, DECODER_BYTES);
	if (!read_file(path, &bytes, err))
		goto out;
	if (!ingest_read(bytes.bytes, bytes.length, "import", now_ms,
			 api->retention_ms ? now_ms - api->retention_ms : 0, &arena, &batch,
			 &rejects, err)) {
		error_prefix(err, "%s", path);
		goto out;
	}
	api_limit_labels(api, &batch, &rejects, now_ms);
	batch.tenant = API_TENANT;
	batch.refusals = &refusals;
	known_modules_meet(api, &batch);
	if (!store(api, &batch, &duplicates, err)) {
		error_prefix(err, "%s", path);
		goto out;
	}
	tell(path, &batch, &rejects, duplicates);
	ok = true;
out:
	arena_release(&arena);
	buffer_release(&bytes);
	return ok;
}

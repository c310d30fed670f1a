/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/ship/uploader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "node-agent/network/back_off.h"
#include "node-agent/network/network_client.h"
#include "node-agent/ship/announced_modules.h"
#include "node-agent/ship/thread.h"
#include "node-agent/ship/upload_file.h"
#include "node-agent/ship/verdict.h"

enum {
	ANNOUNCE_TEXT_MAX = 64 << 10,
	ANSWER_TIME_MS = 60 * 1000, /* for the server to take in what was sent */
	STOP_MS = 500,              /* for the thread to notice */
	LET_GO_MS = 1000,
};

struct uploader {
	struct ship_options options;
	struct network_client *client;
	struct file_opener *opener;
	struct thread thread;

	/* --- under the lock --- */
	struct announced_modules modules;
	struct ship_counters counters;
	bool is_server_there;

	/* --- the thread's own --- */
	struct back_off back_off;
	int64_t quiet_until_ms; /* nothing is sent before */
	bool is_complaining;    /* the last exchange failed and it was said */
	int64_t pace_ms;        /* when the next byte may go */
	int64_t let_go_ms;      /* when descriptors are looked at, during an upload */
};

/* --- one exchange --- */

/* Once per run of failures. */
static void complain(struct uploader *uploader, const char *doing, const char *why)
{
	if (!uploader->is_complaining)
		log_warn("modules not taken", "doing=\"%s\" why=\"%s\"", doing, why);
	uploader->is_complaining = true;
}

/* Says what a failure was, sets the time before which nothing is tried. */
static enum verdict send_request(struct uploader *uploader, const struct http_request *request,
				 const char *doing, struct http_answer *answer)
{
	struct error err = {0};
	char why[400];
	enum verdict verdict;

	if (network_client_send(uploader->client, request, answer, &err)) {
		verdict = verdict_of(answer);
		verdict_sentence(answer, why, sizeof why);
	} else {
		verdict = VERDICT_RETRY;
		snprintf(why, sizeof why, "%s", err.message);
	}
	if (verdict == VERDICT_ARRIVED) {
		uploader->back_off.failures = 0;
		uploader->is_complaining = false;
		return verdict;
	}
	if (err.kind != ERROR_BUSY) /* told to stop */
		complain(uploader, doing, why);
	if (verdict == VERDICT_RETRY)
		uploader->quiet_until_ms = monotonic_ms() + back_off_next_ms(&uploader->back_off,
									     answer->retry_after_s);
	return verdict;
}

/* --- announcing --- */

static void announce(struct uploader *uploader)
{
	struct http_request request = {
		.method = "POST", .path = "/api/v1/modules", .content_type = "text/plain"};
	struct http_answer answer;
	struct buffer text;
	int64_t now_ms = monotonic_ms();
	enum verdict verdict;
	size_t count;

	buffer_init(&text, ANNOUNCE_TEXT_MAX);
	thread_lock(&uploader->thread);
	count = announced_modules_announce(&uploader->modules, now_ms, &text);
	thread_unlock(&uploader->thread);

	request.pieces[0] = (struct bytes){text.bytes, text.length};
	request.deadline_ms = now_ms + ANSWER_TIME_MS;
	verdict = send_request(uploader, &request, "announce", &answer);

	thread_lock(&uploader->thread);
	if (verdict == VERDICT_ARRIVED) {
		uploader->counters.modules_announced += count;
		if (uploader->options.upload_missing)
			announced_modules_take_wanted(
				&uploader->modules,
				(struct bytes){answer.body.bytes, answer.body.length}, now_ms);
	} else {
		/* refused: an OTLP backend that is not ours; ask again, but rarely */
		announced_modules_announce_again(&uploader->modules, now_ms,
						 verdict == VERDICT_RETRY
							 ? uploader->quiet_until_ms
							 : now_ms + ANNOUNCE_MOST_MS);
	}
	thread_unlock(&uploader->thread);
	http_answer_release(&answer);
	buffer_release(&text);
}

/* --- uploading --- */

struct upload {
	struct uploader *uploader;
	struct ship_module module; /* a copy; descriptor and place stay the list's */
	struct upload_file file;
};

/* Waits until the rate allows length bytes more; false when the thread is to end. */
static bool keep_pace(struct uploader *uploader, size_t length)
{
	const uint64_t rate = uploader->options.upload_bytes_per_second;
	const int64_t now_ms = monotonic_ms();
	bool is_stopping;

	if (!rate)
		return true;
	if (uploader->pace_ms < now_ms)
		uploader->pace_ms = now_ms;
	uploader->pace_ms += (int64_t)(1000 * (uint64_t)length / rate);
	thread_lock(&uploader->thread);
	while (!(is_stopping = thread_is_stopping(&uploader->thread)) &&
	       monotonic_ms() < uploader->pace_ms)
		thread_wait(&uploader->thread, uploader->pace_ms);
	thread_unlock(&uploader->thread);
	return !is_stopping;
}

/* While a long one is sent the others' descriptors are not kept for it. */
static void let_go(struct uploader *uploader)
{
	int64_t now_ms = monotonic_ms();

	if (now_ms < uploader->let_go_ms)
		return;
	uploader->let_go_ms = now_ms + LET_GO_MS;
	thread_lock(&uploader->thread);
	announced_modules_let_go(&uploader->modules, now_ms);
	thread_unlock(&uploader->thread);
}

static int64_t read_upload(void *context, uint64_t offset, void *bytes, size_t room)
{
	struct upload *upload = context;
	int64_t got;

	let_go(upload->uploader);
	if (!keep_pace(upload->uploader, room))
		return -1;
	if (upload->file.fd < 0) {
		memcpy(bytes, upload->file.bytes.bytes + offset, room);
		return (int64_t)room;
	}
	do
		got = pread(upload->file.fd, bytes, room, (off_t)offset);
	while (got < 0 && errno == EINTR);
	return got;
}

static enum verdict send_upload(struct uploader *uploader, struct upload *upload)
{
	char hex[BUILD_ID_HEX], path[BUILD_ID_HEX + 32];
	uint64_t rate = uploader->options.upload_bytes_per_second;
	struct http_request request = {.method = "PUT",
				       .path = path,
				       .content_type = "application/octet-stream",
				       .source = read_upload,
				       .context = upload,
				       .source_length = upload->file.length};
	struct http_answer answer;
	enum verdict verdict;

	snprintf(path, sizeof path, "/api/v1/modules/%s", build_id_format(&upload->module.id, hex));
	/* twice what the rate alone needs: the network may be the slower one */
	request.deadline_ms = monotonic_ms() + ANSWER_TIME_MS +
			      (rate ? (int64_t)(2000 * upload->file.length / rate) : 3600 * 1000);
	verdict = send_request(uploader, &request, "upload", &answer);
	http_answer_release(&answer);
	return verdict;
}

/* Writes down how it went; under the lock. */
static void settle_upload(struct uploader *uploader, const struct upload *upload,
			  enum verdict verdict)
{
	struct known_module *known = announced_modules_find(&uploader->modules, &upload->module.id);

	if (!known)
		return;
	known->is_sent = false;
	uploader->counters.upload_files_refused += known->tries ? 0 : upload->file.refused;
	known->tries++;
	known->is_wanted = verdict == VERDICT_RETRY && known->tries < UPLOAD_TRIES;
	if (verdict == VERDICT_ARRIVED) {
		known->uploaded_ms = monotonic_ms();
		known->uploaded_presence = uploader->modules.presence;
		uploader->counters.modules_uploaded++;
		uploader->counters.upload_bytes += upload->file.length;
	} else if (!known->is_wanted) {
		known->tries = UPLOAD_TRIES;
		uploader->counters.uploads_failed++;
	}
}

static void upload_wanted(struct uploader *uploader, const struct ship_module *module)
{
	struct upload upload = {.uploader = uploader, .module = *module};
	struct error err = {0};
	enum verdict verdict = VERDICT_REFUSED;

	if (file_opener_open(uploader->opener, module, &upload.file, &err))
		verdict = send_upload(uploader, &upload);
	else if (err.kind == ERROR_BUSY) /* told to stop, or held up by another */
		verdict = VERDICT_RETRY;
	else
		log_info("module not uploaded", "name=\"%s\" why=\"%s\"", module->name,
			 err.message);
	if (verdict == VERDICT_ARRIVED)
		log_debug("module uploaded", "name=\"%s\" bytes=%" PRIu64 " debug_file=%d",
			  module->name, upload.file.length, upload.file.is_debug_file);
	thread_lock(&uploader->thread);
	settle_upload(uploader, &upload, verdict);
	thread_unlock(&uploader->thread);
	upload_file_release(&upload.file);
}

/* --- the thread --- */

/* Does one thing that is due; false: nothing is. Called and returns under the lock. */
static bool do_next(struct uploader *uploader, int64_t now_ms)
{
	struct known_module *wanted = announced_modules_wanted(&uploader->modules);
	struct ship_module module;

	if (!uploader->is_server_there || now_ms < uploader->quiet_until_ms)
		return false;
	if (announced_modules_due_ms(&uploader->modules) <= now_ms) {
		thread_unlock(&uploader->thread);
		announce(uploader);
	} else if (wanted) {
		module = wanted->module;
		wanted->is_sent = true;
		thread_unlock(&uploader->thread);
		upload_wanted(uploader, &module);
	} else {
		return false;
	}
	thread_lock(&uploader->thread);
	return true;
}

static int64_t next_time(struct uploader *uploader)
{
	int64_t due_ms = announced_modules_due_ms(&uploader->modules);
	int64_t let_go_ms = announced_modules_let_go(&uploader->modules, monotonic_ms());

	if (!uploader->is_server_there)
		return let_go_ms;
	if (announced_modules_wanted(&uploader->modules))
		due_ms = 0;
	if (due_ms < uploader->quiet_until_ms)
		due_ms = uploader->quiet_until_ms;
	return due_ms < let_go_ms ? due_ms : let_go_ms;
}

static void run(void *context)
{
	struct uploader *uploader = context;

	thread_lock(&uploader->thread);
	while (!thread_is_stopping(&uploader->thread))
		if (!do_next(uploader, monotonic_ms()))
			thread_wait(&uploader->thread, next_time(uploader));
	thread_unlock(&uploader->thread);
}

struct uploader *uploader_start(const struct ship_options *options, struct network *network,
				struct error *err)
{
	struct uploader *uploader = calloc(1, sizeof *uploader);
	const struct sandbox_thread rights = {.reads = options->token_file};

	if (!uploader) {
		error_set(err, ERROR_MEMORY, "no memory for the uploader");
		return NULL;
	}
	uploader->options = *options;
	announced_modules_init(&uploader->modules);
	uploader->client = network_client_new(network, err);
	uploader->opener = file_opener_start(err);
	if (uploader->client && uploader->opener &&
	    thread_start(&uploader->thread, "upload", &rights, run, uploader, err))
		return uploader;
	uploader_stop(uploader);
	return NULL;
}

void uploader_add(struct uploader *uploader, struct ship_module *module)
{
	bool is_over_limit;

	thread_lock(&uploader->thread);
	if (announced_modules_add(&uploader->modules, module, monotonic_ms(), &is_over_limit))
		thread_wake(&uploader->thread);
	uploader->counters.modules_over_limit += is_over_limit;
	thread_unlock(&uploader->thread);
}

void uploader_server_returned(struct uploader *uploader)
{
	thread_lock(&uploader->thread);
	uploader->is_server_there = true;
	announced_modules_server_returned(&uploader->modules, monotonic_ms());
	thread_wake(&uploader->thread);
	thread_unlock(&uploader->thread);
}

void uploader_counters(struct uploader *uploader, struct ship_counters *out)
{
	thread_lock(&uploader->thread);
	out->modules_announced = uploader->counters.modules_announced;
	out->modules_uploaded = uploader->counters.modules_uploaded;
	out->modules_over_limit = uploader->counters.modules_over_limit;
	out->uploads_failed = uploader->counters.uploads_failed;
	out->upload_bytes = uploader->counters.upload_bytes;
	out->upload_files_refused = uploader->counters.upload_files_refused;
	thread_unlock(&uploader->thread);
}

bool uploader_stop(struct uploader *uploader)
{
	if (!uploader)
		return true;
	file_opener_interrupt(uploader->opener);
	if (!thread_stop(&uploader->thread, STOP_MS))
		return false; /* stuck in a file: the process ends, and with it this */
	if (!file_opener_stop(uploader->opener))
		return false; /* it still uses a module */
	thread_release(&uploader->thread);
	network_client_free(uploader->client);
	announced_modules_release(&uploader->modules);
	free(uploader);
	return true;
}

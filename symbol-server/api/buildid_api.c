/* SPDX-License-Identifier: Apache-2.0 */
/* GET /buildid/{build_id}/…: the debuginfod protocol (debuginfod(8), "WEBAPI"), for gdb, elfutils,
 * debuginfod-find and other servers like this one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/hash_table.h"
#include "symbol-server/api/answer.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/symbolize/module_files.h"

static bool read_build_id(struct http_request *request, struct http_response *response,
			  struct build_id *id)
{
	struct parameters none;
	struct error err = {0};

	if (!parameters_open(&none, request, ENDPOINT_none, &err)) {
		answer_failure(response, &err);
		return false;
	}
	if (!parameter_path_build_id(request, id, &err))
		answer_error(response, 400, err.message);
	return err.kind == ERROR_NONE;
}

static const char *keep_text(struct http_request *request, const char *text)
{
	return arena_text(http_request_arena(request), text, strlen(text));
}

static void add_number(struct http_request *request, struct http_response *response,
		       const char *name, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	answer_header(response, name, keep_text(request, text));
}

/* Another file, or other bytes in it, is another tag. */
static void add_etag(struct http_request *request, struct http_response *response, int fd,
		     uint64_t offset)
{
	uint64_t hash = hash_word(0, offset);
	struct stat stat;
	char text[24];

	if (fstat(fd, &stat))
		return;
	hash = hash_word(hash, stat.st_dev);
	hash = hash_word(hash, stat.st_ino);
	hash = hash_word(hash, (uint64_t)stat.st_size);
	hash = hash_word(hash, (uint64_t)stat.st_mtim.tv_sec);
	hash = hash_word(hash, (uint64_t)stat.st_mtim.tv_nsec);
	snprintf(text, sizeof(text), "\"%016" PRIx64 "\"", hash);
	answer_header(response, "ETag", keep_text(request, text));
	answer_header(response, "Cache-Control", "no-cache"); /* a better file may come */
}

/* A client may say how much it would take. */
static bool is_too_large(struct http_request *request, uint64_t bytes)
{
	const char *text = http_request_header(request, "X-DEBUGINFOD-MAXSIZE");
	unsigned long long most = text ? strtoull(text, NULL, 10) : 0;

	return most && bytes > most;
}

/* The file's descriptor is not the caller's any more. */
static void send_file(struct http_request *request, struct http_response *response,
		      const struct module_file *file, uint64_t offset, uint64_t length)
{
	char sentence[120];

	add_number(request, response, "X-DEBUGINFOD-SIZE", length);
	answer_header(response, "X-DEBUGINFOD-FILE", keep_text(request, file->name));
	if (is_too_large(request, length)) {
		snprintf(sentence, sizeof(sentence),
			 "it has %" PRIu64 " bytes, more than X-DEBUGINFOD-MAXSIZE", length);
		answer_error(response, 406, sentence);
		close(file->fd);
		return;
	}
	response->file = (struct http_file){file->fd, offset, length};
	response->content_type = "application/octet-stream";
	add_etag(request, response, file->fd, offset);
}

static void answer_file(struct http_request *request, struct http_response *response,
			struct api *api, enum module_file_kind kind)
{
	struct module_file file;
	struct error err = {0};
	struct build_id id;

	if (!read_build_id(request, response, &id))
		return;
	if (symbolizer_open_file(api->symbolizer, &id, kind, &file, &err))
		send_file(request, response, &file, 0, file.bytes);
	else
		answer_failure(response, &err);
}

void api_buildid_debuginfo_get(struct http_request *request, struct http_response *response,
			       void *context)
{
	answer_file(request, response, context, MODULE_FILE_DEBUG);
}

void api_buildid_executable_get(struct http_request *request, struct http_response *response,
				void *context)
{
	answer_file(request, response, context, MODULE_FILE_EXECUTABLE);
}

void api_buildid_section_get(struct http_request *request, struct http_response *response,
			     void *context)
{
	struct api *api = context;
	struct file_section section;
	struct module_file file;
	struct error err = {0};
	struct build_id id;

	if (!read_build_id(request, response, &id))
		return;
	if (symbolizer_open_section(api->symbolizer, &id, http_request_rest(request), &file,
				    &section, &err))
		send_file(request, response, &file, section.offset, section.length);
	else
		answer_failure(response, &err);
}

void api_buildid_source_get(struct http_request *request, struct http_response *response,
			    void *context)
{
	struct api *api = context;
	struct module_file file;
	struct error err = {0};
	struct build_id id;

	if (!read_build_id(request, response, &id))
		return;
	if (symbolizer_open_source(api->symbolizer, &id, http_request_rest(request), &file, &err))
		send_file(request, response, &file, 0, file.bytes);
	else
		answer_failure(response, &err);
}

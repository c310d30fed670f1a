/* SPDX-License-Identifier: Apache-2.0 */
/* What deploy/include/farflame_context.h writes, as protobuf's own compiler decodes it and as the agent
 * reads it back from this process; what is no context is none. */
#include "node-agent/contexts/process_context.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "deploy/include/farflame_context.h"
#include "node-agent/contexts/thread_record.h"
#include "tests/check.h"

static const char *const keys[] = {"http.route", "farflame.agent.id", "user"};
static const struct farflame_attribute own[] = {{"service.name", "shop"}, {"zone", "b"}};

static char *decode(const uint8_t *bytes, size_t length)
{
	char path[] = "/tmp/farflame-context-XXXXXX", command[300];
	int fd = mkstemp(path);
	char *text = calloc(1, 1 << 16);
	FILE *pipe;

	if (fd < 0 || write(fd, bytes, length) != (ssize_t)length)
		return text;
	close(fd);
	snprintf(command, sizeof command,
		 "protoc --proto_path=schema/wire --decode=farflame.otlp.Resource profiles.proto < %s 2>&1",
		 path);
	pipe = popen(command, "r");
	if (pipe && fread(text, 1, (1 << 16) - 1, pipe) == 0)
		text[0] = '\0';
	if (pipe)
		pclose(pipe);
	unlink(path);
	return text;
}

static void test_payload(void)
{
	char *text;

	CHECK(farflame_context_publish(own, 2, keys, 3));
	text = decode(farflame_context_published->payload, farflame_context_published->payload_bytes);
	CHECK(!strstr(text, "Failed") && !strstr(text, "\n1: "));
	CHECK(strstr(text, "key: \"service.name\"") && strstr(text, "string_value: \"shop\""));
	CHECK(strstr(text, "key: \"threadlocal.attribute_key_map\"") && strstr(text, "array_value"));
	CHECK(strstr(text, "string_value: \"http.route\""));
	free(text);
}

static void test_reading(void)
{
	int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct process_context context = {0};
	const struct farflame_attribute other = {"service.name", "bank"};

	CHECK(process_context_find(self, &context.address));
	CHECK_NUMBER(context.address, (uintptr_t)farflame_context_published);
	CHECK_NUMBER(process_context_read(self, &context, false), PROCESS_CONTEXT_NEW);
	CHECK_NUMBER(context.attribute_count, 2);
	CHECK_TEXT(context.attributes[0].value, "shop");
	CHECK(context.has_threads);
	CHECK_NUMBER(context.key_count, 3);
	CHECK_TEXT(context.keys[2], "user");
	CHECK_NUMBER(process_context_read(self, &context, false), PROCESS_CONTEXT_SAME);
	CHECK(farflame_context_publish(&other, 1, keys, 1));
	CHECK_NUMBER(process_context_read(self, &context, false), PROCESS_CONTEXT_NEW);
	CHECK_TEXT(context.attributes[0].value, "bank");
	CHECK_NUMBER(context.key_count, 1);
	farflame_context_published->published_at_ns = 0;
	CHECK_NUMBER(process_context_read(self, &context, false), PROCESS_CONTEXT_LATER);
	farflame_context_published->version = 3;
	CHECK_NUMBER(process_context_read(self, &context, false), PROCESS_CONTEXT_GONE);
	CHECK_NUMBER(context.attribute_count, 0);
	process_context_release(&context);
	close(self);
}

static void test_record(void)
{
	static const uint8_t trace[16] = {1}, span[8] = {2};
	struct farflame_request request;
	struct thread_record record;
	const struct thread_context *context = (const void *)&request;

	farflame_request_begin(&request, trace, span);
	CHECK(farflame_request_add(&request, 0, "/first"));
	CHECK(farflame_request_add(&request, 1, "forged"));
	CHECK(farflame_request_add(&request, 0, "/last"));
	thread_record_decode(&record, context, sizeof request, keys, 3);
	CHECK_NUMBER(record.attribute_count, 1);
	CHECK_TEXT(record.attributes[0].value, "/last");
	CHECK(!record.has_unknown && !record.is_cut);
	CHECK(farflame_request_add(&request, 200, "later"));
	thread_record_decode(&record, context, sizeof request, keys, 3);
	CHECK(record.has_unknown);
	thread_record_decode(&record, context, THREAD_CONTEXT_HEADER + 4, keys, 3);
	CHECK(record.is_cut);
	CHECK_NUMBER(record.attribute_count, 0); /* an incomplete entry is none */
}

int main(void)
{
	test_payload();
	test_reading();
	test_record();
	return checks_done();
}

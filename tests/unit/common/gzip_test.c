/* SPDX-License-Identifier: Apache-2.0 */
/* Our gzip bytes are read by gzip(1), gzip(1)'s by us. */
#include "common/gzip.h"

#include <stdlib.h>
#include <unistd.h>

#include "tests/check.h"

static size_t run(const char *command, const void *in, size_t in_length, void *out, size_t room)
{
	char path[] = "/tmp/farflame-gzip-XXXXXX", line[200];
	int fd = mkstemp(path);
	size_t length = 0;
	FILE *pipe;

	if (fd < 0 || write(fd, in, in_length) != (ssize_t)in_length)
		return 0;
	close(fd);
	snprintf(line, sizeof line, "%s < %s", command, path);
	pipe = popen(line, "r");
	if (pipe) {
		length = fread(out, 1, room, pipe);
		pclose(pipe);
	}
	unlink(path);
	return length;
}

/* Numbers, digits and zeros: each kind has codes of its own, whatever the cuts; gzip(1) reads it. */
static void test_parts(void)
{
	enum { PART = 20000, ALL = 3 * PART };
	static uint8_t bytes[ALL], back[ALL + 1];
	static const size_t cuts[][5] = {
		{ ALL }, { PART, 2 * PART, ALL }, { 0, 0, 1, PART, ALL }, { ALL - 1, ALL, ALL } };
	static const size_t counts[] = { 1, 3, 5, 3 };
	size_t lengths[4] = { 0 };
	struct error err = { 0 };

	for (int i = 0; i < PART; i++) {
		bytes[i] = (uint8_t)(128 | (unsigned)i * 2654435761u >> 25);
		bytes[PART + i] = (uint8_t)('0' + ((unsigned)i * 2654435761u >> 13) % 10);
	}
	for (int i = 0; i < 4; i++) {
		struct buffer packed;

		buffer_init(&packed, 1 << 20);
		CHECK(gzip_compress_parts(bytes, cuts[i], counts[i], 6, &packed, &err));
		CHECK(run("gzip -dc", packed.bytes, packed.length, back, sizeof back) == ALL &&
		      !memcmp(bytes, back, ALL));
		lengths[i] = packed.length;
		buffer_release(&packed);
		buffer_init(&packed, lengths[i] - 1);
		err.message[0] = '\0';
		CHECK(!gzip_compress_parts(bytes, cuts[i], counts[i], 6, &packed, &err) &&
		      err.kind == ERROR_LIMIT);
		buffer_release(&packed);
		buffer_init(&packed, lengths[i]);
		CHECK(gzip_compress_parts(bytes, cuts[i], counts[i], 6, &packed, &err));
		buffer_release(&packed);
	}
	CHECK(lengths[1] < lengths[0]);
}

int main(void)
{
	enum { LENGTH = 300000 };
	uint8_t *text = malloc(LENGTH), *back = malloc(LENGTH + 1);
	struct buffer packed, out;
	struct error err = { 0 };
	size_t length;

	for (int i = 0; i < LENGTH; i++)
		text[i] = (uint8_t)((unsigned)i * (unsigned)i >> 7);
	buffer_init(&packed, 1 << 20);
	CHECK(gzip_compress(text, LENGTH, 6, &packed, &err));
	CHECK(run("gzip -dc", packed.bytes, packed.length, back, LENGTH + 1) == LENGTH &&
	      !memcmp(text, back, LENGTH));

	test_parts();

	/* two members, as a report and the agent's counters are sent */
	buffer_init(&out, LENGTH + 5);
	CHECK(gzip_compress("tail", 5, 6, &packed, &err));
	CHECK(gzip_inflate(packed.bytes, packed.length, &out, &err)); /* exactly at the limit */
	CHECK(out.length == LENGTH + 5 && !memcmp(out.bytes + LENGTH, "tail", 5));

	buffer_clear(&out);
	length = run("gzip -9c", text, LENGTH, back, LENGTH);
	CHECK(gzip_inflate(back, length, &out, &err) && out.length == LENGTH);

	buffer_clear(&out);
	CHECK(!gzip_inflate(back, length / 2, &out, &err) && err.kind == ERROR_FORMAT);
	CHECK_TEXT(err.message, "gzip data ends early");
	buffer_clear(&out);
	CHECK(!gzip_inflate("not gzip at all", 15, &out, &err) && err.kind == ERROR_FORMAT);
	buffer_clear(&out);
	CHECK(!gzip_inflate("", 0, &out, &err) && err.kind == ERROR_FORMAT);

	/* zlib's own format, by what comes with every Python */
	buffer_clear(&out);
	length = run("python3 -c 'import sys, zlib; sys.stdout.buffer.write("
		     "zlib.compress(sys.stdin.buffer.read()))'",
		     text, LENGTH, back, LENGTH);
	if (length) {
		CHECK(zlib_inflate(back, length, &out, &err) && out.length == LENGTH &&
		      !memcmp(text, out.bytes, LENGTH));
		buffer_clear(&out);
		CHECK(!gzip_inflate(back, length, &out, &err) && err.kind == ERROR_FORMAT);
		CHECK(!zlib_inflate(back, length - 1, &out, &err) && err.kind == ERROR_FORMAT);
		CHECK_TEXT(err.message, "zlib data ends early");
	} else {
		SKIP("no python3 to make zlib data");
	}
	length = run("gzip -9c", text, LENGTH, back, LENGTH);

	buffer_release(&out);
	buffer_init(&out, LENGTH - 1);
	CHECK(!gzip_inflate(back, length, &out, &err) && err.kind == ERROR_LIMIT);
	buffer_release(&out);
	buffer_release(&packed);
	free(text);
	free(back);
	return checks_done();
}

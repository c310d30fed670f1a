/* SPDX-License-Identifier: Apache-2.0 */
/* Packed here by xz, of which liblzma is the library. */
#include "symbol-server/symbolize/convert/gnu_debugdata.h"

#include <stdio.h>
#include <string.h>

#include "tests/check.h"

enum { PACKED_MAX = 4 << 20 };

static uint8_t packed[PACKED_MAX];

static size_t packed_by(const char *command)
{
	FILE *pipe = popen(command, "r");
	size_t length = pipe ? fread(packed, 1, sizeof(packed), pipe) : 0;

	return pipe && !pclose(pipe) ? length : 0;
}

static void refused(size_t length, enum error_kind kind, const char *sentence)
{
	struct buffer out;
	struct error err = {0};

	buffer_init(&out, GNU_DEBUGDATA_BYTES_MAX);
	CHECK(!gnu_debugdata_unpack(packed, length, &out, &err));
	CHECK_NUMBER(err.kind, kind);
	CHECK_TEXT(err.message, sentence);
	buffer_release(&out);
}

static void unpacked(const char *command, size_t want)
{
	size_t length = packed_by(command);
	struct buffer out;
	struct error err = {0};

	buffer_init(&out, GNU_DEBUGDATA_BYTES_MAX);
	CHECK(length > 0 && gnu_debugdata_unpack(packed, length, &out, &err));
	CHECK_NUMBER(out.length, want);
	CHECK(!out.length || (out.bytes[0] == 'y' && out.bytes[out.length - 1] == '\n'));
	buffer_release(&out);
}

int main(void)
{
	size_t length;

	if (!packed_by("xz --version")) {
		SKIP("needs xz");
		return checks_done();
	}
	unpacked("yes | head -c 100 | xz", 100);
	unpacked("yes | head -c 3000000 | xz", 3000000);
	/* what follows the stream is padding */
	unpacked("yes | head -c 100 | xz; printf '\\0\\0\\0\\0\\0'", 100);
	length = packed_by("yes | head -c 3000000 | xz");
	refused(length / 2, ERROR_FORMAT, "its .gnu_debugdata is damaged");
	refused(0, ERROR_FORMAT, "its .gnu_debugdata is damaged");
	packed[length / 2] ^= 1;
	refused(length, ERROR_FORMAT, "its .gnu_debugdata is damaged");
	memset(packed, 'x', 100);
	refused(100, ERROR_FORMAT, "its .gnu_debugdata is damaged");
	length = packed_by("head -c 280000000 /dev/zero | xz -0");
	refused(length, ERROR_LIMIT, "its .gnu_debugdata unpacks to more than 256 MB");
	length = packed_by("yes | head -c 100 | xz --lzma2=preset=0,dict=512MiB");
	refused(length, ERROR_LIMIT, "its .gnu_debugdata needs more than 256 MB to unpack");
	return checks_done();
}

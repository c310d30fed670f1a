/* SPDX-License-Identifier: Apache-2.0 */
/* One question to one debuginfod server, in the server's protocol: GET /buildid/ID/debuginfo or
 * /executable. Asked by a child process that has the network, no rights, and two
 * descriptors: one for its answer and one for the file. It is libcurl and not libdebuginfod because
 * that calls every error ENOENT that is not in its list, also 500, 503, 429 and a bad certificate:
 * a server that is down would look like one that does not have the file. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SOURCES_SOURCE_REQUEST_H
#define SYMBOL_SERVER_SYMBOLIZE_SOURCES_SOURCE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "common/build_id.h"
#include "symbol-server/symbolize/sources/symbol_sources.h"

enum source_kind { SOURCE_DEBUGINFO, SOURCE_EXECUTABLE };

struct source_limits {
	uint32_t stall_s; /* fewer than SOURCE_STALL_BYTES in that time: it does not answer */
	uint32_t total_s; /* for one file */
	uint64_t bytes;   /* of one file */
};

enum { SOURCE_STALL_BYTES = 100 << 10 };

struct source_reply {
	uint32_t answer; /* enum source_answer */
	uint32_t status; /* HTTP; 0: none */
	uint32_t retry_after_s;
	uint64_t bytes;
	bool is_reached; /* a connection was made */
	bool is_no_elf;  /* WRONG_FILE: not even an ELF file; a server that does that is ill */
	char sentence[200];
};

/* What DEBUGINFOD_TIMEOUT, DEBUGINFOD_MAXTIME and DEBUGINFOD_MAXSIZE say, or our own values. */
void source_limits_read(struct source_limits *limits);

/* output becomes the file, as far as it came; what is in it is not verified. id NULL: asks only
 * whether the server answers, for something that nobody has. */
void source_request_run(const char *url, const struct build_id *id, enum source_kind kind,
			const struct source_limits *limits, int output, int stop_fd,
			struct source_reply *reply);

#endif

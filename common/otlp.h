/* SPDX-License-Identifier: Apache-2.0 */
/* struct profile → OTLP profiles bytes (opentelemetry-proto 1.11.0, v1development; field numbers in
 * schema/wire/profiles.proto). Door to protobuf-c. The server's hot path reads in place instead:
 * symbol-server/ingest.
 *
 * What goes out, attribute by attribute, is written in schema/README.md. */
#ifndef COMMON_OTLP_H
#define COMMON_OTLP_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buffer.h"
#include "common/error.h"
#include "common/profile.h"

/* Where content of one kind ends and the next begins, counted from the message's first byte: what
 * gzip_compress_parts() wants to know. */
enum { OTLP_PARTS = 7 };
struct otlp_parts {
	size_t ends[OTLP_PARTS];
	size_t count;
};

/* One ExportProfilesServiceRequest: a resource per process and type, the shared dictionary. Appends to out.
 * parts may be NULL. */
bool otlp_encode(const struct profile *profile, const struct profile_host *host, struct buffer *out,
		 struct otlp_parts *parts, struct error *err);

/* The agent's own resource as a request of its own: one resource with an empty profile. Protobuf
 * messages merge by concatenation, so a report is sent as otlp_encode's bytes followed by these,
 * and counters are as fresh as the sending. Needs no dictionary. */
bool otlp_encode_host(const struct profile_host *host, struct buffer *out, struct error *err);

/* ExportProfilesServiceResponse: how many profiles a partial success refused, and why. False: the
 * bytes are not that message. message is cut to its room. */
bool otlp_decode_response(const void *bytes, size_t length, int64_t *rejected, char *message,
			  size_t room);
bool otlp_encode_response(int64_t rejected, const char *message, struct buffer *out);

/* google.rpc.Status, what OTLP/HTTP answers errors with. */
bool otlp_encode_status(int code, const char *message, struct buffer *out);

#endif

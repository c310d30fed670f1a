/* SPDX-License-Identifier: Apache-2.0 */
/* What a server answers a report with: the OTLP response and google.rpc.Status. */
#include "common/otlp.h"

#include <stdio.h>

#include "schema/wire/profiles.pb-c.h"

static bool pack(const ProtobufCMessage *message, struct buffer *out)
{
	uint8_t *at = buffer_reserve(out, protobuf_c_message_get_packed_size(message));

	if (at)
		out->length += protobuf_c_message_pack(message, at);
	return at != NULL;
}

bool otlp_decode_response(const void *bytes, size_t length, int64_t *rejected, char *message,
			  size_t room)
{
	Farflame__Otlp__ExportProfilesServiceResponse *response =
		farflame__otlp__export_profiles_service_response__unpack(NULL, length, bytes);

	if (!response)
		return false;
	*rejected = response->partial_success ? response->partial_success->rejected_profiles : 0;
	snprintf(message, room, "%s",
		 response->partial_success ? response->partial_success->error_message : "");
	farflame__otlp__export_profiles_service_response__free_unpacked(response, NULL);
	return true;
}

bool otlp_encode_response(int64_t rejected, const char *message, struct buffer *out)
{
	Farflame__Otlp__ExportProfilesServiceResponse response =
		FARFLAME__OTLP__EXPORT_PROFILES_SERVICE_RESPONSE__INIT;
	Farflame__Otlp__ExportProfilesPartialSuccess partial =
		FARFLAME__OTLP__EXPORT_PROFILES_PARTIAL_SUCCESS__INIT;

	partial.rejected_profiles = rejected;
	partial.error_message = (char *)message;
	if (rejected || (message && *message))
		response.partial_success = &partial;
	return pack(&response.base, out);
}

bool otlp_encode_status(int code, const char *message, struct buffer *out)
{
	Farflame__Otlp__Status status = FARFLAME__OTLP__STATUS__INIT;

	status.code = code;
	status.message = (char *)message;
	return pack(&status.base, out);
}

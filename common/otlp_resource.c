/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP resources: what every one of this host has, and the agent's own with its counters. */
#include "common/otlp_message.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"

enum { RESOURCE_ATTRIBUTES = 128, ID_HEX = 33 };

static const char scope_name[] = "farflame-agent";

char *otlp_text(struct arena *arena, const char *text)
{
	size_t length = strlen(text);
	char *copy = arena_text(arena, text, length);

	for (size_t i = 0; copy && i < length;) {
		unsigned char lead = (unsigned char)copy[i];
		size_t more = lead < 0x80                   ? 0
			      : lead >= 0xc2 && lead < 0xe0 ? 1
			      : (lead & 0xf0) == 0xe0       ? 2
			      : lead >= 0xf0 && lead < 0xf5 ? 3
							    : 9;
		size_t good = 0;

		while (good < more && more < 9 &&
		       ((unsigned char)copy[i + 1 + good] & 0xc0) == 0x80)
			good++;
		if (good == more)
			i += more + 1;
		else
			copy[i++] = '?';
	}
	return copy;
}

/* Once: what does not fit now will not in the next report. */
static void warn_of_limit(const char *key)
{
	static atomic_flag has_warned = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&has_warned))
		log_warn("attributes of the host not shipped", "limit=%d first=\"%s\"",
			 RESOURCE_ATTRIBUTES, key);
}

static KeyValue *add_resource_attribute(struct arena *arena, Resource *resource, const char *key)
{
	KeyValue *pair;

	if (resource->n_attributes >= RESOURCE_ATTRIBUTES) {
		warn_of_limit(key);
		return NULL;
	}
	pair = MAKE(arena, KeyValue);
	if (!pair)
		return NULL;
	pair->key = otlp_text(arena, key);
	pair->value = MAKE(arena, AnyValue);
	if (!pair->value)
		return NULL;
	resource->attributes[resource->n_attributes++] = pair;
	return pair;
}

void otlp_add_text(struct arena *arena, Resource *resource, const char *key, const char *text)
{
	KeyValue *pair = text && *text ? add_resource_attribute(arena, resource, key) : NULL;

	if (pair) {
		pair->value->value_case = FARFLAME__OTLP__ANY_VALUE__VALUE_STRING_VALUE;
		pair->value->string_value = otlp_text(arena, text);
	}
}

void otlp_add_number(struct arena *arena, Resource *resource, const char *key, uint64_t number)
{
	KeyValue *pair = add_resource_attribute(arena, resource, key);

	if (pair) {
		pair->value->value_case = FARFLAME__OTLP__ANY_VALUE__VALUE_INT_VALUE;
		pair->value->int_value = (int64_t)number;
	}
}

ResourceProfiles *otlp_new_resource(struct arena *arena, const struct profile_host *host,
				    const uint8_t id[16], Profile **profile)
{
	ResourceProfiles *outer = MAKE(arena, ResourceProfiles);
	ScopeProfiles *scope = MAKE(arena, ScopeProfiles);

	*profile = MAKE(arena, Profile);
	if (!outer || !scope || !*profile)
		return NULL;
	outer->resource = MAKE(arena, Resource);
	outer->scope_profiles = arena_array(arena, 1, sizeof *outer->scope_profiles);
	scope->scope = MAKE(arena, Scope);
	scope->profiles = arena_array(arena, 1, sizeof *scope->profiles);
	(*profile)->profile_id.data = arena_copy(arena, id, 16);
	if (!outer->resource || !outer->scope_profiles || !scope->scope || !scope->profiles ||
	    !(*profile)->profile_id.data)
		return NULL;
	(*profile)->profile_id.len = 16;
	scope->scope->name = (char *)scope_name;
	scope->scope->version = otlp_text(arena, host->agent_version ? host->agent_version : "");
	scope->profiles[0] = *profile;
	scope->n_profiles = 1;
	outer->scope_profiles[0] = scope;
	outer->n_scope_profiles = 1;
	outer->resource->attributes = arena_array(arena, RESOURCE_ATTRIBUTES,
						  sizeof *outer->resource->attributes);
	if (!outer->resource->attributes || !scope->scope->version)
		return NULL;
	otlp_add_text(arena, outer->resource, "host.name", host->host);
	return outer;
}

void otlp_add_labels(struct arena *arena, Resource *resource, const struct profile_host *host)
{
	for (size_t i = 0; i < host->label_count; i++) {
		char key[160];

		if (!strcmp(host->label_names[i], "service"))
			continue; /* it is service.name */
		snprintf(key, sizeof key, "farflame.label.%s", host->label_names[i]);
		otlp_add_text(arena, resource, key, host->label_values[i]);
	}
}

bool otlp_pack(const ProtobufCMessage *message, struct buffer *out, struct error *err)
{
	size_t length = protobuf_c_message_get_packed_size(message);
	uint8_t *at = buffer_reserve(out, length);

	if (!at)
		return error_set(err, ERROR_LIMIT, "a message of %zu bytes is over the limit",
				 length);
	out->length += protobuf_c_message_pack(message, at);
	return true;
}

/* The agent's own profile_id: made of the agent's id and the sequence number, so that a retry has
 * the same and no other report has. */
static void host_profile_id(const struct profile_host *host, uint8_t id[16])
{
	memcpy(id, host->agent_id, 16);
	for (int i = 0; i < 8; i++)
		id[8 + i] ^= (uint8_t)(host->report_seq >> (8 * i));
}

static void add_host_attributes(struct arena *arena, Resource *resource,
				const struct profile_host *host)
{
	char text[160];
	size_t used = 0;

	for (int i = 0; i < 16; i++)
		used += (size_t)snprintf(text + used, ID_HEX - used, "%02x", host->agent_id[i]);
	otlp_add_text(arena, resource, "farflame.agent.id", text);
	otlp_add_text(arena, resource, "host.arch", host->architecture);
	otlp_add_text(arena, resource, "os.version", host->kernel_release);
	otlp_add_text(arena, resource, "service.version", host->agent_version);
	otlp_add_number(arena, resource, "farflame.report.seq", host->report_seq);
	otlp_add_number(arena, resource, "farflame.report.acknowledged", host->acknowledged_seq);
	otlp_add_number(arena, resource, "farflame.rate_hz", host->rate_hz);
	if (host->sent_ns)
		otlp_add_number(arena, resource, "farflame.sent_unix_nano", host->sent_ns);
	for (size_t i = 0; i < host->counter_count; i++) {
		if (!host->counters[i].value && !strncmp(host->counters[i].name, "lost.", 5))
			continue; /* nothing lost is nothing said */
		snprintf(text, sizeof text, "farflame.%s", host->counters[i].name);
		otlp_add_number(arena, resource, text, host->counters[i].value);
	}
	otlp_add_labels(arena, resource, host);
}

bool otlp_encode_host(const struct profile_host *host, struct buffer *out, struct error *err)
{
	Request request = FARFLAME__OTLP__EXPORT_PROFILES_SERVICE_REQUEST__INIT;
	struct arena arena;
	ResourceProfiles *resource;
	Profile *profile;
	uint8_t id[16];
	bool ok = false;

	arena_init(&arena, 1 << 20);
	host_profile_id(host, id);
	resource = otlp_new_resource(&arena, host, id, &profile);
	if (!resource)
		goto out;
	add_host_attributes(&arena, resource->resource, host);
	profile->time_unix_nano = host->start_ns;
	profile->duration_nano = host->duration_ns;
	request.resource_profiles = &resource;
	request.n_resource_profiles = 1;
	ok = !arena.failed && otlp_pack(&request.base, out, err);
out:
	if (arena.failed)
		error_set(err, ERROR_LIMIT, "the agent's counters and labels do not fit 1 MiB");
	arena_release(&arena);
	return ok;
}

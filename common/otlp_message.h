/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of common/otlp: protobuf-c's messages, made in an arena, and what both kinds of resource
 * (a process', the agent's own) are built of. */
#ifndef COMMON_OTLP_MESSAGE_H
#define COMMON_OTLP_MESSAGE_H

#include <protobuf-c/protobuf-c.h>

#include "common/arena.h"
#include "common/otlp.h"
#include "schema/wire/profiles.pb-c.h"

/* The generated names carry the package; here only the message matters. */
#define MESSAGE(name_) Farflame__Otlp__##name_
typedef MESSAGE(ExportProfilesServiceRequest) Request;
typedef MESSAGE(ProfilesDictionary) Dictionary;
typedef MESSAGE(ResourceProfiles) ResourceProfiles;
typedef MESSAGE(ScopeProfiles) ScopeProfiles;
typedef MESSAGE(InstrumentationScope) Scope;
typedef MESSAGE(Resource) Resource;
typedef MESSAGE(Profile) Profile;
typedef MESSAGE(Sample) Sample;
typedef MESSAGE(Mapping) Mapping;
typedef MESSAGE(Location) Location;
typedef MESSAGE(Line) Line;
typedef MESSAGE(Function) Function;
typedef MESSAGE(Stack) Stack;
typedef MESSAGE(Link) Link;
typedef MESSAGE(ValueType) ValueType;
typedef MESSAGE(KeyValueAndUnit) Attribute;
typedef MESSAGE(AnyValue) AnyValue;
typedef MESSAGE(KeyValue) KeyValue;

/* A message in the arena, set to its defaults. */
#define NEW(arena_, type_, init_) new_message(arena_, sizeof(type_), init_)

static inline void *new_message(struct arena *arena, size_t size, void (*init)(void *))
{
	void *message = arena_alloc(arena, size);

	if (message)
		init(message);
	return message;
}

#define INIT_OF(type_, name_)                             \
	static inline void init_##type_(void *message)    \
	{                                                 \
		farflame__otlp__##name_##__init(message); \
	}
INIT_OF(Dictionary, profiles_dictionary)
INIT_OF(ResourceProfiles, resource_profiles)
INIT_OF(ScopeProfiles, scope_profiles)
INIT_OF(Scope, instrumentation_scope)
INIT_OF(Resource, resource)
INIT_OF(Profile, profile)
INIT_OF(Sample, sample)
INIT_OF(Mapping, mapping)
INIT_OF(Location, location)
INIT_OF(Line, line)
INIT_OF(Function, function)
INIT_OF(Stack, stack)
INIT_OF(Link, link)
INIT_OF(ValueType, value_type)
INIT_OF(Attribute, key_value_and_unit)
INIT_OF(AnyValue, any_value)
INIT_OF(KeyValue, key_value)
#define MAKE(arena_, type_) ((type_ *)NEW(arena_, type_, init_##type_))

/* A copy in the arena. Protobuf strings are UTF-8, process names are any bytes: what is not UTF-8
 * becomes
 * '?'. */
char *otlp_text(struct arena *arena, const char *text);

/* Attributes of a resource; an empty text adds none. */
void otlp_add_text(struct arena *arena, Resource *resource, const char *key, const char *text);
void otlp_add_number(struct arena *arena, Resource *resource, const char *key, uint64_t number);
/* host->label_names and values, but for "service", which is service.name. */
void otlp_add_labels(struct arena *arena, Resource *resource, const struct profile_host *host);

/* A resource of this host with one scope with one empty profile of that id. NULL: arena full. */
ResourceProfiles *otlp_new_resource(struct arena *arena, const struct profile_host *host,
				    const uint8_t id[16], Profile **profile);

/* Appends the message's bytes. */
bool otlp_pack(const ProtobufCMessage *message, struct buffer *out, struct error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/attribute_labels.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *name, *label;
} known[] = {
	{"service_name", "service"},         {"host_name", "host"},
	{"container_id", "container"},       {"k8s_pod_name", "pod"},
	{"k8s_namespace_name", "namespace"}, {"thread_name", "thread"},
};

static bool begins(const char *name, size_t length, const char *prefix)
{
	size_t prefix_length = strlen(prefix);

	return length >= prefix_length && !memcmp(name, prefix, prefix_length);
}

static bool is_of_resource(const char *name)
{
	static const char *const prefixes[] = {"service.",   "deployment.", "k8s.",  "cloud.",
					       "container.", "host.",       "faas.", "thread.name"};

	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (begins(name, strlen(name), prefixes[i]))
			return true;
	return false;
}

void label_name_resolve(const char *name, char out[LABEL_NAME_BYTES])
{
	bool has_dots = strchr(name, '.');

	snprintf(out, LABEL_NAME_BYTES, "%s", name);
	if (has_dots && !is_of_resource(name))
		return;
	for (char *at = out; *at; at++)
		if (*at == '.')
			*at = '_';
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(out, known[i].name))
			strcpy(out, known[i].label);
}

bool label_is_of_attribute(const char *key, size_t length)
{
	static const char *const not_these[] = {
		"farflame.",         "process.",     "telemetry.",        "os.",   "host.",
		"threadlocal.",      "thread.",      "profiler.",         "otel.", "faas.instance",
		"service.instance.", "container.id", "container.command", "attr.", "attr_",
		"trace_id",          "span_id",
	};
	static const char *const ends[] = {".uid", ".ip", ".id", ".start_time", "_id"};

	for (size_t i = 0; i < sizeof not_these / sizeof *not_these; i++)
		if (begins(key, length, not_these[i]))
			return false;
	if (length == 6 && begins(key, length, "thread"))
		return false;
	if (begins(key, length, "cloud.account.id"))
		return true;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		size_t end = strlen(ends[i]);

		if (length > end && !memcmp(key + length - end, ends[i], end))
			return false;
	}
	return length && length < LABEL_NAME_BYTES && !memmem(key, length, ".annotation.", 12);
}

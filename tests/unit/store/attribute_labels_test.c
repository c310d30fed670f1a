/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/attribute_labels.h"

#include <string.h>

#include "symbol-server/store/sample_context.h"
#include "tests/check.h"

static const struct {
	const char *name, *label;
} names[] = {
	{"service", "service"},
	{"service.name", "service"},
	{"service_name", "service"},
	{"service.version", "service_version"},
	{"k8s.pod.name", "pod"},
	{"k8s_namespace_name", "namespace"},
	{"k8s.deployment.name", "k8s_deployment_name"},
	{"deployment.environment.name", "deployment_environment_name"},
	{"deployment_environment_name", "deployment_environment_name"},
	{"thread.name", "thread"},
	{"thread.id", "thread.id"},
	{"http.route", "http.route"}, /* a sample's */
	{"http_route", "http_route"},
	{"attr_http_route", "attr_http_route"},
	{"serviceability.x", "serviceability.x"},
};

static const char *const kept[] = {"service.version",
				   "deployment.environment.name",
				   "team",
				   "k8s.deployment.name",
				   "k8s.pod.label.app",
				   "cloud.region",
				   "cloud.account.id",
				   "acme.cost-center"};
static const char *const left_out[] = {"service.instance.id",
				       "k8s.pod.uid",
				       "process.pid",
				       "process.command_line",
				       "host.id",
				       "telemetry.sdk.name",
				       "farflame.label.x",
				       "k8s.pod.ip",
				       "request_id",
				       "thread",
				       "",
				       "k8s.pod.annotation.checksum"};

static void test_context_names(void)
{
	static const char context[] = "worker\x1fhttp.route\x1e/a\x1fplain\x1e"
				      "1\x1fservice.x\x1ey";
	char value[64];

	sample_context_get(context, "http.route", value, sizeof value);
	CHECK_TEXT(value, "/a");
	sample_context_get(context, "attr_http_route", value, sizeof value);
	CHECK_TEXT(value, "/a");
	sample_context_get(context, "attr.plain", value, sizeof value);
	CHECK_TEXT(value, "1");
	sample_context_get(context, "attr_plain", value, sizeof value);
	CHECK_TEXT(value, "1");
	sample_context_get(context, "attr_http_rout", value, sizeof value);
	CHECK_TEXT(value, "");
	sample_context_get(context, "attr.service.x", value, sizeof value);
	CHECK_TEXT(value, "y");
}

/* user.id and user_id are two attributes: whoever deletes one must not lose the other. */
static void test_likeness(void)
{
	static const char context[] = "worker\x1fuser.id\x1e"
				      "dot\x1fuser_id\x1e"
				      "line";
	static const char *const line[] = {"attr.user_id"}, *const folded[] = {"attr_a_b"};
	char value[64], reduced[CONTEXT_BYTES_MAX];

	sample_context_get(context, "user.id", value, sizeof value);
	CHECK_TEXT(value, "dot");
	sample_context_get(context, "attr.user_id", value, sizeof value);
	CHECK_TEXT(value, "line");
	sample_context_get(context, "attr_user_id", value, sizeof value);
	CHECK_TEXT(value, "line");
	sample_context_get("w\x1fuser.id\x1e"
			   "dot",
			   "attr.user_id", value, sizeof value);
	CHECK_TEXT(value, "");
	sample_context_get("w\x1fhttp.a_b\x1e"
			   "x",
			   "http.a_b", value, sizeof value);
	CHECK_TEXT(value, "x");
	sample_context_get("w\x1fhttp.a.b\x1e"
			   "x",
			   "http.a_b", value, sizeof value);
	CHECK_TEXT(value, "");
	sample_context_reduce(context, line, 1, reduced);
	CHECK_TEXT(reduced, "\x1fuser_id\x1eline");
	sample_context_reduce("w\x1f"
			      "a.b\x1ex",
			      folded, 1, reduced);
	CHECK_TEXT(reduced, "\x1f"
			    "a.b\x1ex"); /* as it is kept, not as it is asked */
}

static bool note_name(void *to, const char *name, const char *value)
{
	strcat(strcat(strcat(strcat(to, name), "="), value), " ");
	return true;
}

static void test_processes(void)
{
	static const char context[] = "worker\x1f" CONTEXT_LIFETIME "\x1e"
				      "7.ab\x1fprocess.command_line\x1e"
				      "a b\x1fprocess.pid\x1e"
				      "7\x1fsystemd.unit\x1e"
				      "c.service";
	static const char *const two[] = {"unit", "pid"};
	char value[64], reduced[CONTEXT_BYTES_MAX], all[256] = "";

	CHECK(sample_context_has_name("pid") && sample_context_is_of_process("pid"));
	CHECK(sample_context_is_of_process("process.pid"));
	CHECK(sample_context_is_of_process("attr.process.command_line"));
	CHECK(sample_context_is_of_process("attr_process_command_line"));
	CHECK(!sample_context_is_of_process("thread") &&
	      !sample_context_is_of_process("http.route"));
	CHECK(!sample_context_is_of_process("process"));
	sample_context_get(context, "command", value, sizeof value);
	CHECK_TEXT(value, "a b");
	sample_context_get(context, "attr_process_command_line", value, sizeof value);
	CHECK_TEXT(value, "a b");
	sample_context_reduce(context, two, 2, reduced);
	sample_context_get(reduced, "unit", value, sizeof value);
	CHECK_TEXT(value, "c.service");
	CHECK(sample_context_each(context, note_name, all));
	CHECK_TEXT(all, "thread=worker command=a b pid=7 unit=c.service ");
}

int main(void)
{
	char label[LABEL_NAME_BYTES];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		label_name_resolve(names[i].name, label);
		CHECK_TEXT(label, names[i].label);
	}
	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
		CHECK(label_is_of_attribute(kept[i], strlen(kept[i])));
	for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
		CHECK(!label_is_of_attribute(left_out[i], strlen(left_out[i])));
	test_context_names();
	test_likeness();
	test_processes();
	return checks_done();
}

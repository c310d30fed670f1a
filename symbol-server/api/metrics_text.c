/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/metrics_text.h"

#include <inttypes.h>

void metrics_describe(struct buffer *out, const char *name, const char *type, const char *help)
{
	buffer_printf(out, "# HELP farflame_server_%s %s\n# TYPE farflame_server_%s %s\n", name,
		      help, name, type);
}

void metrics_put(struct buffer *out, const char *name, const char *type, uint64_t value,
		 const char *help)
{
	metrics_describe(out, name, type, help);
	buffer_printf(out, "farflame_server_%s %" PRIu64 "\n", name, value);
}

void metrics_put_labelled(struct buffer *out, const char *name, const char *label, const char *text,
			  uint64_t value)
{
	buffer_printf(out, "farflame_server_%s{%s=\"", name, label);
	buffer_append_label_value(out, text);
	buffer_printf(out, "\"} %" PRIu64 "\n", value);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/formats/accounting.h"

#include <string.h>

void accounting_add_lost(struct accounting *accounting, const char *reason, uint64_t count)
{
	unsigned at = 0;

	while (at < accounting->lost_count && strcmp(accounting->lost_by[at].reason, reason))
		at++;
	if (at == ACCOUNTING_REASONS) {
		at--;
		accounting->lost_by[at].reason = "other";
	} else if (at == accounting->lost_count) {
		accounting->lost_count++;
		accounting->lost_by[at].reason = reason;
		accounting->lost_by[at].count = 0;
	}
	accounting->lost_by[at].count += count;
}

void accounting_json(struct json *json, const struct accounting *accounting)
{
	json_open(json, '{');
	json_key_uint(json, "value", accounting->value);
	json_key_uint(json, "samples", accounting->samples);
	json_key_uint(json, "taken", accounting->taken);
	json_key_uint(json, "lost", accounting->lost);
	json_key(json, "lost_by");
	json_open(json, '{');
	for (unsigned i = 0; i < accounting->lost_count; i++) {
		json_string(json, accounting->lost_by[i].reason);
		buffer_append_char(json->out, ':');
		json->needs_comma = false;
		json_uint(json, accounting->lost_by[i].count);
	}
	json_key_int(json, "unexplained", accounting->unexplained);
	json_close(json, '}');
	json_key_uint(json, "unwind_incomplete", accounting->unwind_incomplete);
	json_key_uint(json, "unsymbolized", accounting->unsymbolized);
	json_key_uint(json, "cut", accounting->cut);
	json_key_uint(json, "hosts", accounting->hosts);
	json_close(json, '}');
}

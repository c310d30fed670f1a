/* SPDX-License-Identifier: Apache-2.0 */
/* What several formats say of an answer in the same words. */
#include <inttypes.h>
#include <stdio.h>

#include "symbol-server/formats/flame_formats.h"

const struct flame_module *flame_answer_module(const struct flame_answer *answer,
					       const struct flame_frame *frame)
{
	static const struct flame_module none = {.name = "", .build_id = ""};

	return frame->module < answer->module_count ? &answer->modules[frame->module] : &none;
}

void flame_range_json(struct json *json, const struct flame_answer *answer)
{
	json_key_string(json, "type", answer->type);
	json_key_string(json, "unit", answer->unit);
	json_key_int(json, "from", answer->from_ms);
	json_key_int(json, "until", answer->until_ms);
}

void flame_function_json(struct json *json, const struct flame_answer *answer,
			 const struct flame_frame *frame)
{
	const struct flame_module *module = flame_answer_module(answer, frame);

	json_key_string(json, "name", frame->name);
	json_key_signature(json, frame);
	json_key_string(json, "file", frame->file);
	json_key_uint(json, "line", frame->line);
	json_key_string(json, "module", module->name);
	json_key_string(json, "build_id", module->build_id);
	json_key_language(json, frame);
}

void json_key_language(struct json *json, const struct flame_frame *frame)
{
	if (frame->language)
		json_key_string(json, "language", frame_language_names[frame->language]);
}

void json_key_signature(struct json *json, const struct flame_frame *frame)
{
	if (frame->signature)
		json_key_string(json, "signature", frame->signature);
}

void stack_id_json(struct json *json, uint64_t id)
{
	char text[17] = "";

	if (id)
		snprintf(text, sizeof(text), "%016" PRIx64, id);
	json_string(json, text);
}

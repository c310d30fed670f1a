/* SPDX-License-Identifier: Apache-2.0 */
/* The build-id of a file, as readelf and not as our own reader has it. */
#ifndef TESTS_UNIT_SYMBOLIZE_SOURCES_READELF_ID_H
#define TESTS_UNIT_SYMBOLIZE_SOURCES_READELF_ID_H

#include <stdio.h>
#include <string.h>

#include "common/build_id.h"

/* Length 0: it has none. */
static struct build_id id_of(const char *folder, const char *name)
{
	struct build_id id = {0};
	char line[512], hex[256] = "";
	FILE *pipe;

	snprintf(line, sizeof(line),
		 "readelf -n %s/%s 2>/dev/null | sed -n 's/.*Build ID: //p' | head -n 1", folder,
		 name);
	pipe = popen(line, "r");
	if (pipe && fgets(hex, sizeof(hex), pipe))
		hex[strcspn(hex, "\n")] = '\0';
	if (pipe)
		pclose(pipe);
	build_id_parse(&id, hex, strlen(hex));
	return id;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/program_info.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "node-agent/processes/container.h"
#include "node-agent/processes/memory_map.h"
#include "node-agent/processes/process_files.h"

enum { CGROUP_TEXT_MAX = 128 << 10 };

struct program_info *program_info_share(struct program_info *info)
{
	if (info)
		info->references++;
	return info;
}

void program_info_free(struct program_info *info)
{
	if (info && !--info->references)
		free(info);
}

static struct program_info *new_info(const struct process_info *from)
{
	const char *texts[] = {from->executable_path, from->container_id, from->service, from->pod,
			       from->namespace_};
	enum { TEXTS = sizeof(texts) / sizeof(texts[0]) };
	struct program_info *info;
	size_t length = 0;
	char *at;

	for (int i = 0; i < TEXTS; i++)
		length += strlen(texts[i]) + 1;
	info = malloc(sizeof(*info) + length);
	if (!info)
		return NULL;
	at = info->text;
	for (int i = 0; i < TEXTS; i++) {
		size_t size = strlen(texts[i]) + 1;

		memcpy(at, texts[i], size);
		texts[i] = at;
		at += size;
	}
	info->references = 1;
	info->shown = (struct process_info){texts[0], texts[1], texts[2], texts[3], texts[4]};
	return info;
}

/* False: the process is gone, or its cgroup file is not to be read. */
static bool read_container(int directory, struct container *container)
{
	struct buffer text;
	bool ok;

	if (directory < 0)
		return false;
	buffer_init(&text, CGROUP_TEXT_MAX);
	ok = process_file_read(directory, "cgroup", &text, NULL) && text.length;
	if (ok)
		container_read((const char *)text.bytes, text.length, container);
	buffer_release(&text);
	return ok;
}

struct program_info *program_info_read(int directory, const struct program_info *inherited,
				       const char *exec_path)
{
	struct process_info from = {"", "", "", "", ""};
	struct container container;
	char path[PATH_MAX];

	if (inherited)
		from = inherited->shown;
	if (exec_path)
		from.executable_path = exec_path;
	if (directory >= 0 && process_link_read(directory, "exe", path, sizeof(path))) {
		memory_path_cut_deleted(path);
		from.executable_path = path;
	}
	if (read_container(directory, &container)) {
		from.container_id = container.id;
		from.service = container.service;
		from.pod = container.pod;
	}
	return new_info(&from);
}

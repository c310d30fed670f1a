/* SPDX-License-Identifier: Apache-2.0 */
#include "common/file_content.h"

#include <string.h>

#include "common/file_hash.h"

bool file_content_read(int fd, struct file_content *content, struct error *err)
{
	struct error not_elf = {0};

	memset(content, 0, sizeof *content);
	content->is_elf = elf_image_read(fd, &content->image, &not_elf);
	return file_hash(fd, &content->htlhash, err);
}

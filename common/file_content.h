/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of a file by its bytes alone: an ELF image or not, and the hash. To be read where
 * there is nothing to lose: it is a stranger's. */
#ifndef COMMON_FILE_CONTENT_H
#define COMMON_FILE_CONTENT_H

#include <stdbool.h>

#include "common/build_id.h"
#include "common/elf_image.h"
#include "common/error.h"

struct file_content {
	bool is_elf;
	struct elf_image image; /* all zero when it is none */
	struct build_id htlhash;
};

/* False: unreadable. The descriptor stays the caller's. */
bool file_content_read(int fd, struct file_content *content, struct error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/ship/debug_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/elf_image.h"

bool debug_file_is_elf(int fd)
{
	char magic[4];

	return pread(fd, magic, sizeof magic, 0) == sizeof magic && !memcmp(magic, "\177ELF", 4);
}

/* A path may come from a stranger's file: no waiting on fifos, no devices, and the content decides.
 */
static int open_checked(const char *path, const struct build_id *id, struct elf_image *image)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat status;

	if (fd < 0)
		return -1;
	if (!fstat(fd, &status) && S_ISREG(status.st_mode) && debug_file_is_elf(fd) &&
	    elf_image_read(fd, image, NULL) && build_id_equal(&image->gnu, id) &&
	    image->has_debug_info)
		return fd;
	close(fd);
	return -1;
}

static int open_by_build_id(const char *root, const struct build_id *id, struct elf_image *image)
{
	char hex[BUILD_ID_HEX], path[PATH_MAX];

	build_id_format(id, hex);
	if (snprintf(path, sizeof path, "%s/.build-id/%.2s/%s.debug", root, hex, hex + 2) >=
	    (int)sizeof path)
		return -1;
	return open_checked(path, id, image);
}

/* The directory the running file lies in, as this process sees it. False: it lies nowhere any more.
 */
static bool directory_of(int fd, char directory[PATH_MAX])
{
	char link[40];
	ssize_t length;
	char *slash;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	length = readlink(link, directory, PATH_MAX - 1);
	if (length <= 0 || directory[0] != '/')
		return false;
	directory[length] = '\0';
	slash = strrchr(directory, '/');
	*slash = '\0';
	return true;
}

static int open_by_link(const char *root, const struct build_id *id, int running, const char *name,
			struct elf_image *image)
{
	char directory[PATH_MAX], path[PATH_MAX];
	int found = -1;

	if (!*name || strchr(name, '/') || !directory_of(running, directory))
		return -1;
	if (snprintf(path, sizeof path, "%s/%s", directory, name) < (int)sizeof path)
		found = open_checked(path, id, image);
	if (found < 0 &&
	    snprintf(path, sizeof path, "%s/.debug/%s", directory, name) < (int)sizeof path)
		found = open_checked(path, id, image);
	if (found < 0 &&
	    snprintf(path, sizeof path, "%s%s/%s", root, directory, name) < (int)sizeof path)
		found = open_checked(path, id, image);
	return found;
}

int debug_file_open(const char *root, const struct build_id *id, int fd)
{
	/* [0] the running file, [1] the one looked at; some kilobytes each, too much for a stack */
	struct elf_image *images = calloc(2, sizeof *images);
	int found = -1;

	if (!images || !id->length)
		goto out;
	if (fd >= 0 && (!elf_image_read(fd, &images[0], NULL) || images[0].has_debug_info))
		goto out;
	found = open_by_build_id(root, id, &images[1]);
	if (found < 0 && fd >= 0)
		found = open_by_link(root, id, fd, images[0].debuglink, &images[1]);
out:
	free(images);
	return found;
}

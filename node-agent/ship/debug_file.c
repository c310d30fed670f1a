/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/ship/debug_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/elf_image.h"
#include "common/log.h"
#include "node-agent/kernel/stranger_file.h"

bool debug_file_is_elf(int fd)
{
	char magic[4];

	return pread(fd, magic, sizeof magic, 0) == sizeof magic && !memcmp(magic, "\177ELF", 4);
}

/* What a search is about. */
struct debug_search {
	const struct build_id *id;
	const char *name;        /* of its .gnu_debuglink; "" when it has none */
	struct elf_image *image; /* room for the file looked at */
	uint32_t *refused;
};

/* The content decides what the file is taken for. */
static int open_checked(struct debug_search *search, int folder, const char *path,
			const struct file_search *rule)
{
	int fd = stranger_file_open(folder, path, rule);

	if (fd < 0) {
		if (errno != ENOENT && errno != ENOTDIR) {
			log_info("debug file not taken", "file=\"%s\" why=\"%s\"", path,
				 stranger_file_why(errno));
			++*search->refused;
		}
		return -1;
	}
	if (debug_file_is_elf(fd) && elf_image_read(fd, search->image, NULL) &&
	    build_id_equal(&search->image->gnu, search->id) && search->image->has_debug_info)
		return fd;
	close(fd);
	return -1;
}

static int open_beside(struct debug_search *search, int folder, const struct file_search *rule)
{
	char path[NAME_MAX + 16];
	int found = open_checked(search, folder, search->name, rule);

	if (found < 0 && snprintf(path, sizeof path, ".debug/%s", search->name) < (int)sizeof path)
		found = open_checked(search, folder, path, rule);
	return found;
}

/* False: the running file's folder is not to be had here, or is a third user's. */
static bool rule_beside(int running, int folder, struct file_search *rule)
{
	struct stat file, place;

	return folder >= 0 && stranger_file_stat(running, &file) &&
	       stranger_file_stat(folder, &place) && stranger_file_beside(&file, &place, rule);
}

/* Below what root keeps for the host: distributions have links in it. Anybody can ask for any of
 * it, by a file with that build-id. */
static int open_below(struct debug_search *search, int root, const char *path)
{
	return open_checked(search, root, path,
			    &(struct file_search){.reader = READER_ANYBODY, .follows_links = true});
}

static int search_all(struct debug_search *search, const char *root_path, int running)
{
	struct file_search rule;
	char path[PATH_MAX] = "", hex[BUILD_ID_HEX], text[PATH_MAX];
	int root = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int folder = running >= 0 ? stranger_file_folder(running, path) : -1, found = -1;
	bool is_beside = rule_beside(running, folder, &rule);

	build_id_format(search->id, hex);
	snprintf(text, sizeof text, ".build-id/%.2s/%s.debug", hex, hex + 2);
	if (root >= 0)
		found = open_below(search, root, text);
	if (found < 0 && is_beside && *search->name)
		found = open_beside(search, folder, &rule);
	if (found < 0 && root >= 0 && *path && *search->name &&
	    snprintf(text, sizeof text, "%s/%s", path, search->name) < (int)sizeof text)
		found = open_below(search, root, text);
	if (root >= 0)
		close(root);
	if (folder >= 0)
		close(folder);
	return found;
}

int debug_file_open(const char *root, const struct build_id *id, int fd, uint32_t *refused)
{
	/* [0] the running file, [1] the one looked at; some kilobytes each, too much for a stack */
	struct elf_image *images = calloc(2, sizeof *images);
	uint32_t ignored = 0;
	struct debug_search search = {.id = id, .refused = refused ? refused : &ignored};
	int found = -1;

	if (!images || !id->length)
		goto out;
	if (fd >= 0 && (!elf_image_read(fd, &images[0], NULL) || images[0].has_debug_info))
		goto out;
	search.image = &images[1];
	search.name = strchr(images[0].debuglink, '/') ? "" : images[0].debuglink;
	found = search_all(&search, root, fd);
out:
	free(images);
	return found;
}

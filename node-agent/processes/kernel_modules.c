/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/kernel_modules.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "common/buffer.h"
#include "common/elf_image.h"
#include "node-agent/processes/process_files.h"

enum { NOTES_MAX = 64 << 10, SECTION_TEXT_MAX = 64 };

/* "/proc" → "/sys"; a test's directory has both too. */
static int open_sys(const char *proc_root, const char *below, struct error *err)
{
	const char *slash = strrchr(proc_root, '/');
	int parent = slash ? (int)(slash - proc_root) : 0, fd;
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%.*s%ssys/%s", parent, proc_root, slash ? "/" : "",
		     below) >= (int)sizeof(path)) {
		error_set(err, ERROR_OPTION, "a path below /sys is too long");
		return -1;
	}
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		error_set_system(err, errno, "open %s", path);
	return fd;
}

static bool read_notes(int directory, const char *name, struct build_id *gnu, struct error *err)
{
	struct buffer notes;
	bool ok = false;

	buffer_init(&notes, NOTES_MAX);
	if (!process_file_read(directory, name, &notes, err))
		goto out;
	if (!elf_notes_build_id(notes.bytes, notes.length, gnu)) {
		error_set(err, ERROR_NOT_FOUND, "%s has no build-id", name);
		goto out;
	}
	ok = true;
out:
	buffer_release(&notes);
	return ok;
}

bool kernel_build_id(const char *proc_root, struct build_id *gnu, struct error *err)
{
	int directory = open_sys(proc_root, "kernel", err);
	bool ok;

	if (directory < 0)
		return false;
	ok = read_notes(directory, "notes", gnu, err);
	close(directory);
	return ok;
}

/* --- /proc/modules --- */

bool kernel_module_parse(const char *line, struct kernel_module *module)
{
	uint64_t size;

	/* name size references dependencies state address [taints] */
	if (sscanf(line, "%63s %" SCNu64 " %*s %*s %*s %" SCNx64, module->name, &size,
		   &module->base) != 3 ||
	    !module->base || !size || size > UINT64_MAX - module->base ||
	    strchr(module->name, '/') || module->name[0] == '.')
		return false;
	module->end = module->base + size;
	return true;
}

static int by_base(const void *a, const void *b)
{
	const struct kernel_module *left = a, *right = b;

	return left->base < right->base ? -1 : left->base > right->base;
}

static void sort_modules(struct kernel_module *modules, size_t count)
{
	qsort(modules, count, sizeof(*modules), by_base);
	for (size_t i = 0; i + 1 < count; i++)
		if (modules[i].end > modules[i + 1].base)
			modules[i].end = modules[i + 1].base;
}

bool kernel_modules_read(const char *proc_root, struct kernel_module **modules, size_t *count,
			 struct error *err)
{
	struct kernel_module *read = NULL;
	char path[PATH_MAX], line[4096];
	size_t used = 0, capacity = 0;
	bool ok = false;
	FILE *file;

	if (snprintf(path, sizeof(path), "%s/modules", proc_root) >= (int)sizeof(path))
		return error_set(err, ERROR_OPTION, "the path of /proc/modules is too long");
	file = fopen(path, "re");
	if (!file && errno != ENOENT)
		return error_set_system(err, errno, "open %s", path);
	while (file && used < KERNEL_MODULES_MAX && fgets(line, sizeof(line), file)) {
		if (!ARRAY_GROW(read, used, capacity)) {
			error_set(err, ERROR_MEMORY, "no memory for more than %zu modules", used);
			goto out;
		}
		used += kernel_module_parse(line, &read[used]);
	}
	if (used)
		sort_modules(read, used);
	*modules = read;
	*count = used;
	read = NULL;
	ok = true;
out:
	free(read);
	if (file)
		fclose(file);
	return ok;
}

/* --- /sys/module/NAME --- */

static bool read_section(int directory, const char *name, uint64_t *address)
{
	char text[SECTION_TEXT_MAX + 1], *end;
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return false;
	length = read(fd, text, SECTION_TEXT_MAX);
	close(fd);
	if (length <= 0)
		return false;
	text[length] = '\0';
	*address = strtoull(text, &end, 16);
	return end != text && *address;
}

/* The nearest section above .text ends it: sysfs tells where sections are, not how long. */
static void read_text_end(int sections, struct kernel_module_text *text)
{
	DIR *list = fdopendir(openat(sections, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *entry;
	uint64_t address;

	while (list && (entry = readdir(list)))
		if (entry->d_name[0] == '.' && strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0 &&
		    read_section(sections, entry->d_name, &address) && address > text->start &&
		    address < text->end)
			text->end = address;
	if (list)
		closedir(list);
}

static uint64_t end_of_module(const char *proc_root, const char *name, uint64_t address)
{
	struct kernel_module *modules = NULL;
	uint64_t end = address;
	size_t count = 0;

	if (kernel_modules_read(proc_root, &modules, &count, NULL))
		for (size_t i = 0; i < count; i++)
			if (!strcmp(modules[i].name, name))
				end = modules[i].end;
	free(modules);
	return end;
}

bool kernel_module_text(const char *proc_root, const char *name, struct kernel_module_text *text,
			struct error *err)
{
	char below[PATH_MAX];
	int directory = -1, sections = -1;
	bool ok = false;

	*text = (struct kernel_module_text){0};
	if (strchr(name, '/') || name[0] == '.' ||
	    snprintf(below, sizeof(below), "module/%s", name) >= (int)sizeof(below))
		return error_set(err, ERROR_OPTION, "'%s' is not a module's name", name);
	directory = open_sys(proc_root, below, err);
	if (directory < 0)
		return false;
	sections = openat(directory, "sections", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (sections < 0 || !read_section(sections, ".text", &text->start)) {
		error_set(err, ERROR_UNSUPPORTED, "where module %s's .text is cannot be read",
			  name);
		goto out;
	}
	text->end = end_of_module(proc_root, name, text->start);
	read_text_end(sections, text);
	read_notes(directory, "notes/.note.gnu.build-id", &text->gnu, NULL);
	ok = true;
out:
	if (sections >= 0)
		close(sections);
	close(directory);
	return ok;
}

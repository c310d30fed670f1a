/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/sources/upload_sums.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/crc32c.h"

enum {
	LINE_MAX_BYTES = 64,
	LINES_MAX = 2, /* this content's, and that of the one it replaces */
	READ_BYTES = 64 << 10,
};

/* ---- lines ---- */

static size_t format_line(const struct upload_sum *sum, char *line)
{
	int length = snprintf(line, LINE_MAX_BYTES, "%08x %llu ", sum->crc,
			      (unsigned long long)sum->bytes);

	length += snprintf(line + length, LINE_MAX_BYTES - (size_t)length, "%08x\n",
			   crc32c(0, line, (size_t)length));
	return (size_t)length;
}

/* Exactly as it was written: a digit that means the same is damage too. */
static bool read_line(const char *line, size_t length, struct upload_sum *sum)
{
	char again[LINE_MAX_BYTES], text[LINE_MAX_BYTES];
	unsigned long long bytes;

	if (length >= sizeof text)
		return false;
	memcpy(text, line, length);
	text[length] = 0;
	if (sscanf(text, "%8x %llu", &sum->crc, &bytes) != 2)
		return false;
	sum->bytes = bytes;
	return format_line(sum, again) == length && !memcmp(again, line, length);
}

struct lines {
	struct upload_sum sums[LINES_MAX];
	unsigned count;
	bool is_there, is_damaged;
};

static int open_sums(int directory, const char *name, int flags)
{
	char path[PATH_MAX];

	snprintf(path, sizeof path, "%s" UPLOAD_SUM, name);
	return openat(directory, path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static struct lines read_lines(int directory, const char *name)
{
	char text[LINES_MAX * LINE_MAX_BYTES + 1];
	struct lines lines = {0};
	int fd = open_sums(directory, name, O_RDONLY);
	ssize_t length = fd >= 0 ? pread(fd, text, sizeof text, 0) : -1;
	const char *at = text, *end;

	/* That there are no descriptors or no memory says nothing of the file. */
	lines.is_there = fd >= 0 ||
			 (errno != ENOENT && errno != EMFILE && errno != ENFILE && errno != ENOMEM);
	lines.is_damaged = lines.is_there && length <= 0;
	if (fd >= 0)
		close(fd);
	for (; length > 0 && !lines.is_damaged; length -= end - at, at = end) {
		end = memchr(at, '\n', (size_t)length);
		end = end ? end + 1 : at + length;
		if (lines.count == LINES_MAX ||
		    !read_line(at, (size_t)(end - at), &lines.sums[lines.count]))
			lines.is_damaged = true;
		else
			lines.count++;
	}
	return lines;
}

static bool write_whole(int fd, const char *text, size_t length)
{
	return fd >= 0 && write(fd, text, length) == (ssize_t)length && !fsync(fd);
}

bool upload_sum_write(int directory, const char *name, const struct upload_sum *sum,
		      struct error *err)
{
	struct lines before = read_lines(directory, name);
	char text[LINES_MAX * LINE_MAX_BYTES], path[PATH_MAX], made[PATH_MAX + 8];
	size_t length = format_line(sum, text);
	bool ok;
	int fd;

	if (before.count)
		length += format_line(&before.sums[0], text + length);
	snprintf(path, sizeof path, "%s" UPLOAD_SUM, name);
	snprintf(made, sizeof made, "%s.new", path);
	fd = openat(directory, made, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	ok = write_whole(fd, text, length) && !renameat(directory, made, directory, path);
	if (!ok) {
		error_set_system(err, errno, "store the upload's checksum");
		unlinkat(directory, made, 0);
	}
	if (fd >= 0)
		close(fd);
	return ok;
}

void upload_sum_remove(int directory, const char *name)
{
	char path[PATH_MAX + 8];

	snprintf(path, sizeof path, "%s" UPLOAD_SUM, name);
	unlinkat(directory, path, 0);
}

/* ---- files ---- */

static bool sum_file(int fd, struct upload_sum *sum)
{
	uint8_t bytes[READ_BYTES];
	ssize_t got = 1;

	*sum = (struct upload_sum){0};
	while (got > 0) {
		got = pread(fd, bytes, READ_BYTES, (off_t)sum->bytes);
		if (got > 0) {
			sum->crc = crc32c(sum->crc, bytes, (size_t)got);
			sum->bytes += (uint64_t)got;
		} else if (got < 0 && errno == EINTR) {
			got = 1;
		}
	}
	return got == 0;
}

enum upload_state upload_sum_compare(int directory, const char *name, int fd)
{
	struct lines lines = read_lines(directory, name);
	struct upload_sum sum;

	if (!lines.is_there)
		return UPLOAD_UNKNOWN;
	if (lines.is_damaged || !sum_file(fd, &sum))
		return UPLOAD_DAMAGED;
	for (unsigned i = 0; i < lines.count; i++)
		if (lines.sums[i].crc == sum.crc && lines.sums[i].bytes == sum.bytes)
			return UPLOAD_INTACT;
	return UPLOAD_DAMAGED;
}

/* ---- all of them ---- */

static bool is_sum(const char *name)
{
	return strstr(name, UPLOAD_SUM) != NULL;
}

static void verify_file(int directory, const char *name, bool deletes, FILE *out,
			struct uploads_report *report)
{
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	enum upload_state state = fd >= 0 ? upload_sum_compare(directory, name, fd)
					  : UPLOAD_DAMAGED;

	/* A running server replaces files and removes them. */
	if (state == UPLOAD_DAMAGED && faccessat(directory, name, F_OK, AT_SYMLINK_NOFOLLOW)) {
		close(fd);
		return;
	}
	report->files++;
	report->damaged += state == UPLOAD_DAMAGED;
	report->unknown += state == UPLOAD_UNKNOWN;
	if (state == UPLOAD_DAMAGED)
		fprintf(out, "uploads/%s: damaged: it is not what was sent%s\n", name,
			deletes ? "; deleted" : "");
	if (state == UPLOAD_DAMAGED && deletes) {
		unlinkat(directory, name, 0);
		upload_sum_remove(directory, name);
	}
	if (fd >= 0)
		close(fd);
}

static void verify_folder(int directory, const char *folder, bool deletes, FILE *out,
			  struct uploads_report *report)
{
	int fd = openat(directory, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	char name[PATH_MAX];

	if (!entries && fd >= 0)
		close(fd);
	while (entries && (entry = readdir(entries))) {
		snprintf(name, sizeof name, "%s/%s", folder, entry->d_name);
		if (entry->d_name[0] != '.' && !is_sum(entry->d_name))
			verify_file(directory, name, deletes, out, report);
	}
	if (entries)
		closedir(entries);
}

bool uploads_verify(const char *cache_directory, bool deletes, FILE *out,
		    struct uploads_report *report, struct error *err)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *entries;

	*report = (struct uploads_report){0};
	snprintf(path, sizeof path, "%s/uploads", cache_directory);
	entries = opendir(path);
	if (!entries)
		return errno == ENOENT || error_set_system(err, errno, "read directory '%s'", path);
	while ((entry = readdir(entries)))
		if (entry->d_name[0] != '.' && strncmp(entry->d_name, "receiving-", 10))
			verify_folder(dirfd(entries), entry->d_name, deletes, out, report);
	closedir(entries);
	if (report->files && report->unknown)
		fprintf(out,
			"uploads: %u files, %u of them without checksums: sent to an earlier "
			"version\n",
			report->files, report->unknown);
	else if (report->files)
		fprintf(out, "uploads: %u files\n", report->files);
	return true;
}

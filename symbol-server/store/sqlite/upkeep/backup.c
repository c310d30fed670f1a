/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of a data directory, as of one moment.
 *
 * While this process has the directory's flock() no server changes a database: it begins a read
 * transaction on every one of them, which from then on sees that moment whatever is written, and
 * copies the journal, which has what was acknowledged and is not in them. The databases are copied
 * afterwards, without the lock. */
#include "common/clock.h"
#include "symbol-server/store/data_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/whole_file.h"
#include "symbol-server/store/sqlite/database.h"
#include "symbol-server/store/sqlite/page_checksums.h"

enum {
	DATABASES_MAX = 8192,
	STEP_PAGES = 256,
	LOCK_WAIT_MS = 120000,
	LOCK_HELD_MS = 50000, /* a server waits a minute for it */
	PATH_ROOM = 4200,
	COPY_BYTES = 1 << 16,
	DEPTH_MAX = 8, /* of folders with uploads */
};

static const char marker[] = "unfinished-backup",
		  label[] = "backup"; /* the same file, in the end */

struct source {
	char *name;
	sqlite3 *db;        /* in a read transaction; NULL: damaged */
	struct stat status; /* at the moment; st_size 0: it has more than the file says, in a log */
};

struct backup {
	const char *data, *base;
	char partial[PATH_ROOM];
	int data_fd;
	struct source *sources;
	unsigned count;
	struct backup_report *report;
};

/* --- directories and files --- */

static bool make_directory(const char *path, struct error *err)
{
	return !mkdir(path, 0700) || errno == EEXIST ||
	       error_set_system(err, errno, "make directory '%s'", path);
}

/* A partial copy: files, and folders as deep as uploads are. What says that it is one goes last. */
static void remove_tree(const char *path, unsigned depth)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	char child[PATH_ROOM];

	while (directory && (entry = readdir(directory))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (snprintf(child, sizeof child, "%s/%s", path, entry->d_name) >=
		    (int)sizeof child)
			continue;
		if (strcmp(entry->d_name, marker) && unlink(child) && depth)
			remove_tree(child, depth - 1);
	}
	if (directory)
		closedir(directory);
	snprintf(child, sizeof child, "%s/%s", path, marker);
	unlink(child);
	rmdir(path);
}

/* 1 it is empty, 0 it is not there, -1 neither. */
static int is_empty(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	int result = 1;

	if (!directory)
		return errno == ENOENT ? 0 : -1;
	while ((entry = readdir(directory)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			result = -1;
	closedir(directory);
	return result;
}

static bool has_file(const char *directory, const char *name)
{
	char path[PATH_ROOM + 32];

	snprintf(path, sizeof path, "%s/%s", directory, name);
	return !access(path, F_OK);
}

/* Whoever writes to a file of one backup would change others. */
static bool shares_files(const char *data)
{
	DIR *directory = has_file(data, label) ? opendir(data) : NULL;
	struct dirent *entry;
	struct stat status;
	bool shares = false;

	while (directory && !shares && (entry = readdir(directory)))
		shares = !fstatat(dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) &&
			 S_ISREG(status.st_mode) && status.st_nlink > 1;
	if (directory)
		closedir(directory);
	return shares;
}

static bool is_finished(const char *data, struct error *err)
{
	return !has_file(data, marker) ||
	       error_set(err, ERROR_CONFLICT,
			 "'%s' is a backup that was not finished (there is a file %s in it)", data,
			 marker);
}

bool data_is_whole(const char *data, struct error *err)
{
	return is_finished(data, err) &&
	       (!shares_files(data) ||
		error_set(
			err, ERROR_CONFLICT,
			"'%s' is a backup that shares files with another one: copy it (cp -r) and "
			"start on the copy",
			data));
}

/* Blocks of zeros stay holes: most of a journal segment is. */
static bool copy_bytes(int from, int to, uint64_t *bytes, struct error *err)
{
	static const char zeros[COPY_BYTES];
	char block[COPY_BYTES];
	off_t at = 0;
	ssize_t got;

	while ((got = pread(from, block, sizeof block, at)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_set_system(err, errno, "read a file to be copied");
		if (memcmp(block, zeros, (size_t)got) && pwrite(to, block, (size_t)got, at) != got)
			return error_set_system(err, errno ? errno : ENOSPC, "write a copy");
		at += got;
	}
	*bytes += (uint64_t)at;
	if (ftruncate(to, at) || fsync(to))
		return error_set_system(err, errno, "write a copy");
	return true;
}

/* What is the same file in the base, by size and time of its last change, is a link to that. to:
 * below partial. */
static bool link_file(struct backup *backup, const char *to, const struct stat *wanted)
{
	char from[PATH_ROOM + 300];
	struct stat status;

	if (!backup->base || !wanted->st_size)
		return false;
	snprintf(from, sizeof from, "%s%s", backup->base, to + strlen(backup->partial));
	if (lstat(from, &status) || !S_ISREG(status.st_mode) || status.st_size != wanted->st_size ||
	    status.st_mtim.tv_sec != wanted->st_mtim.tv_sec ||
	    status.st_mtim.tv_nsec != wanted->st_mtim.tv_nsec || link(from, to))
		return false;
	backup->report->linked++;
	return true;
}

/* So that a later backup knows it again. */
static void keep_time(const char *path, const struct stat *status)
{
	struct timespec times[2] = {status->st_mtim, status->st_mtim};

	if (status->st_size)
		utimensat(AT_FDCWD, path, times, 0);
}

/* A file that is not there any more is passed over: *is_there says so. */
static bool copy_file(struct backup *backup, const char *from, const char *to, bool *is_there,
		      struct error *err)
{
	int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), out;
	bool ok;

	*is_there = in >= 0;
	if (in < 0)
		return errno == ENOENT || error_set_system(err, errno, "open '%s'", from);
	out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ok = out >= 0 ? copy_bytes(in, out, &backup->report->bytes, err)
		      : error_set_system(err, errno, "make '%s'", to);
	if (out >= 0)
		close(out);
	close(in);
	return ok || error_prefix(err, "'%s'", from);
}

/* --- the moment --- */

static bool lock(const struct backup *backup, struct error *err)
{
	int64_t until_ms = monotonic_ms() + LOCK_WAIT_MS;

	while (flock(backup->data_fd, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return error_set_system(err, errno, "lock '%s'", backup->data);
		if (monotonic_ms() > until_ms)
			return error_set(err, ERROR_BUSY,
					 "'%s' was being written for %d s without a pause",
					 backup->data, LOCK_WAIT_MS / 1000);
		poll(NULL, 0, 1);
	}
	return true;
}

static bool has_ending(const char *name, const char *ending)
{
	size_t length = strlen(name), wanted = strlen(ending);

	return length > wanted && !strcmp(name + length - wanted, ending);
}

/* Begins a transaction and reads, which is when SQLite takes its view of the file. */
static bool begin(struct source *source, const char *path, struct error *err)
{
	int code = sqlite3_open_v2(path, &source->db,
				   SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
					   SQLITE_OPEN_EXRESCODE,
				   page_checksums_vfs());

	if (code == SQLITE_OK) {
		sqlite3_busy_timeout(source->db, 5000);
		database_leave_log(source->db);
		code = sqlite3_exec(source->db,
				    "PRAGMA query_only = 1; PRAGMA cache_size = -256; BEGIN;"
				    "SELECT count(*) FROM sqlite_schema;",
				    NULL, NULL, NULL);
	}
	if (code == SQLITE_OK)
		return true;
	database_error(source->db, "open", err);
	sqlite3_close_v2(source->db);
	source->db = NULL;
	return false;
}

/* While it has a log it changes when that is written back: then it is not known by size and time.
 */
static void look_at(struct source *source, const char *path)
{
	char wal[PATH_ROOM + 8];
	struct stat status;

	snprintf(wal, sizeof wal, "%s-wal", path);
	if (stat(path, &source->status) || (!stat(wal, &status) && status.st_size))
		source->status.st_size = 0;
}

static bool add_source(struct backup *backup, const char *name, struct error *err)
{
	struct source *source = &backup->sources[backup->count];
	struct error why = {0};
	char path[PATH_ROOM];

	if (backup->count == DATABASES_MAX)
		return error_set(err, ERROR_LIMIT, "more than %d databases", DATABASES_MAX);
	snprintf(path, sizeof path, "%s/%s", backup->data, name);
	if (!begin(source, path, &why)) {
		if (access(path, F_OK))
			return true; /* too old meanwhile */
		if (why.kind != ERROR_FORMAT) {
			if (err)
				*err = why;
			return false;
		}
		backup->report->damaged++;
		log_error("damaged file is not in the backup", "path=\"%s\" reason=\"%s\"", path,
			  why.message);
		return true;
	}
	look_at(source, path);
	source->name = strdup(name);
	backup->count++;
	return source->name || error_set(err, ERROR_MEMORY, "no memory for a backup");
}

static bool each_name(const char *path, bool (*fn)(struct backup *, const char *, struct error *),
		      const char *ending, struct backup *backup, struct error *err)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	bool ok = true;

	if (!directory)
		return errno == ENOENT || error_set_system(err, errno, "read directory '%s'", path);
	while (ok && (entry = readdir(directory)))
		if (has_ending(entry->d_name, ending))
			ok = fn(backup, entry->d_name, err);
	closedir(directory);
	return ok;
}

static bool copy_segment(struct backup *backup, const char *name, struct error *err)
{
	char from[PATH_ROOM + 16], to[PATH_ROOM + 300];
	bool is_there;

	snprintf(from, sizeof from, "%s/journal/%s", backup->data, name);
	snprintf(to, sizeof to, "%s/journal/%s", backup->partial, name);
	if (!copy_file(backup, from, to, &is_there, err))
		return false;
	backup->report->journal_segments += is_there;
	return true;
}

/* Transactions first: a segment that goes meanwhile is in them. */
static bool take_moment(struct backup *backup, struct error *err)
{
	char journal[PATH_ROOM + 16];
	int64_t start_ms;
	bool ok;

	snprintf(journal, sizeof journal, "%s/journal", backup->partial);
	if (!make_directory(journal, err) || !lock(backup, err))
		return false;
	start_ms = monotonic_ms();
	snprintf(journal, sizeof journal, "%s/journal", backup->data);
	ok = each_name(backup->data, add_source, ".db", backup, err) &&
	     each_name(journal, copy_segment, ".journal", backup, err);
	backup->report->locked_ms = monotonic_ms() - start_ms;
	flock(backup->data_fd, LOCK_UN);
	if (ok && backup->report->locked_ms > LOCK_HELD_MS)
		ok = error_set(err, ERROR_BUSY,
			       "it took %d s to look at every file, a server may have written "
			       "meanwhile: try again",
			       (int)(backup->report->locked_ms / 1000));
	return ok;
}

/* --- databases --- */

static bool copy_pages(sqlite3 *from, sqlite3 *to, struct error *err)
{
	sqlite3_backup *copy = sqlite3_backup_init(to, "main", from, "main");
	int code;

	if (!copy)
		return database_error(to, "copy to", err);
	do {
		code = sqlite3_backup_step(copy, STEP_PAGES);
		if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
			sqlite3_sleep(10);
	} while (code == SQLITE_OK || code == SQLITE_BUSY || code == SQLITE_LOCKED);
	sqlite3_backup_finish(copy);
	return code == SQLITE_DONE || database_error(to, "copy to", err);
}

/* Without a log of its own: the directory's name says whether it is whole. */
static bool copy_database(struct backup *backup, struct source *source, struct error *err)
{
	static const char fast[] = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
				   "PRAGMA cache_size = -1024;";
	char path[PATH_ROOM + 300];
	struct stat status = {0};
	sqlite3 *db = NULL;
	bool ok;

	snprintf(path, sizeof path, "%s/%s", backup->partial, source->name);
	if (link_file(backup, path, &source->status)) {
		backup->report->databases++;
		return true;
	}
	ok = sqlite3_open_v2(path, &db,
			     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
				     SQLITE_OPEN_EXRESCODE,
			     page_checksums_vfs()) == SQLITE_OK ||
	     database_error(db, "make", err);
	if (ok)
		page_checksums_as(db, source->db);
	ok = ok && database_exec(db, fast, err) && copy_pages(source->db, db, err) &&
	     database_exec(db, "PRAGMA journal_mode = WAL", err);
	sqlite3_close_v2(db);
	if (!ok || !path_sync(path, err))
		return false;
	backup->report->databases++;
	if (!stat(path, &status))
		backup->report->bytes += (uint64_t)status.st_size;
	if (status.st_size == source->status.st_size)
		keep_time(path, &source->status);
	return true;
}

static bool copy_databases(struct backup *backup, struct error *err)
{
	for (unsigned i = 0; i < backup->count; i++) {
		if (!copy_database(backup, &backup->sources[i], err))
			return false;
		sqlite3_close_v2(backup->sources[i].db);
		backup->sources[i].db = NULL;
	}
	return true;
}

/* --- uploads: written once and never changed --- */

static bool copy_uploads(struct backup *backup, const char *from, const char *to, unsigned depth,
			 struct error *err)
{
	DIR *directory = opendir(from);
	struct dirent *entry;
	bool ok = true;

	if (!directory)
		return errno == ENOENT || error_set_system(err, errno, "read directory '%s'", from);
	ok = make_directory(to, err);
	while (ok && (entry = readdir(directory))) {
		char child[PATH_ROOM], copy[PATH_ROOM];
		struct stat status;
		bool is_there;

		if (entry->d_name[0] == '.' || !strncmp(entry->d_name, "receiving-", 10) ||
		    snprintf(child, sizeof child, "%s/%s", from, entry->d_name) >=
			    (int)sizeof child ||
		    snprintf(copy, sizeof copy, "%s/%s", to, entry->d_name) >= (int)sizeof copy ||
		    lstat(child, &status))
			continue;
		if (S_ISDIR(status.st_mode) && depth) {
			ok = copy_uploads(backup, child, copy, depth - 1, err);
		} else if (S_ISREG(status.st_mode)) {
			is_there = link_file(backup, copy, &status);
			if (!is_there) {
				ok = copy_file(backup, child, copy, &is_there, err);
				keep_time(copy, &status);
			}
			backup->report->files += is_there;
		}
	}
	closedir(directory);
	return ok && path_sync(to, err);
}

static bool copy_symbols(struct backup *backup, struct error *err)
{
	char from[PATH_ROOM + 16], to[PATH_ROOM + 16];

	snprintf(from, sizeof from, "%s/cache/uploads", backup->data);
	if (access(from, F_OK))
		return true;
	snprintf(to, sizeof to, "%s/cache", backup->partial);
	if (!make_directory(to, err))
		return false;
	snprintf(to, sizeof to, "%s/cache/uploads", backup->partial);
	return copy_uploads(backup, from, to, DEPTH_MAX, err);
}

/* --- the whole --- */

/* Many days are many files. */
static void allow_files(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* TO.partial with the marker in it. */
static bool start_partial(struct backup *backup, const char *to, struct error *err)
{
	char path[PATH_ROOM + 32], text[PATH_ROOM + 200];
	size_t length = strlen(to);
	int fd;

	while (length > 1 && to[length - 1] == '/')
		length--;
	if (!length || length > PATH_ROOM - 400)
		return error_set(err, ERROR_OPTION, "a backup needs the path of a directory");
	if (is_empty(to) < 0)
		return error_set(err, ERROR_CONFLICT, "'%s' is there and is not an empty directory",
				 to);
	snprintf(backup->partial, sizeof backup->partial, "%.*s.partial", (int)length, to);
	if (has_file(backup->partial, marker) || has_file(backup->partial, label))
		remove_tree(backup->partial, DEPTH_MAX + 2);
	if (mkdir(backup->partial, 0700) && is_empty(backup->partial) != 1) {
		error_set_system(err, errno, "make directory '%s'", backup->partial);
		backup->partial[0] = 0;
		return false;
	}
	snprintf(path, sizeof path, "%s/%s", backup->partial, marker);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	length = (size_t)snprintf(text, sizeof text,
				  "farflame-server " FARFLAME_VERSION
				  " --data %s --backup %s, begun at unix time %lld\n",
				  backup->data, to, (long long)time(NULL));
	if (fd < 0 || write(fd, text, length) != (ssize_t)length || fsync(fd))
		error_set_system(err, errno, "make '%s'", path);
	if (fd >= 0)
		close(fd);
	return fd >= 0 && path_sync(backup->partial, err);
}

static bool sync_parent(const char *path, struct error *err)
{
	char parent[PATH_ROOM];
	char *slash;

	snprintf(parent, sizeof parent, "%s", path);
	slash = strrchr(parent, '/');
	if (slash == parent)
		slash++;
	if (slash)
		*slash = 0;
	return path_sync(slash ? parent : ".", err);
}

/* Everything is on disk: first the file in it says that it is whole, then its name. */
static bool finish(struct backup *backup, const char *to, struct error *err)
{
	char path[PATH_ROOM + 32], name[PATH_ROOM + 32];

	snprintf(path, sizeof path, "%s/journal", backup->partial);
	if (!path_sync(path, err))
		return false;
	snprintf(path, sizeof path, "%s/%s", backup->partial, marker);
	snprintf(name, sizeof name, "%s/%s", backup->partial, label);
	if (rename(path, name))
		return error_set_system(err, errno, "rename '%s'", path);
	if (!path_sync(backup->partial, err))
		return false;
	if (rename(backup->partial, to))
		return error_set_system(err, errno, "rename '%s' to '%s'", backup->partial, to);
	backup->partial[0] = 0;
	return sync_parent(to, err);
}

static bool is_data(const char *data, struct error *err)
{
	char path[PATH_ROOM];

	snprintf(path, sizeof path, "%s/journal", data);
	if (access(data, F_OK))
		return error_set_system(err, errno, "look at '%s'", data);
	return !access(path, F_OK) ||
	       error_set(err, ERROR_NOT_FOUND, "'%s' is not the data directory of a server", data);
}

static bool is_backup(const char *base, struct error *err)
{
	return !base || (is_finished(base, err) &&
			 (has_file(base, label) ||
			  error_set(err, ERROR_NOT_FOUND, "'%s' is not a backup", base)));
}

bool data_backup(const char *data, const char *to, const char *base, struct backup_report *report,
		 struct error *err)
{
	struct backup backup = {.data = data, .base = base, .data_fd = -1, .report = report};
	bool ok = false;

	*report = (struct backup_report){0};
	allow_files();
	if (!is_data(data, err) || !is_finished(data, err) || !is_backup(base, err))
		return false;
	backup.sources = calloc(DATABASES_MAX, sizeof *backup.sources);
	backup.data_fd = open(data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!backup.sources || backup.data_fd < 0)
		error_set_system(err, errno, "open directory '%s'", data);
	else
		ok = start_partial(&backup, to, err) && take_moment(&backup, err) &&
		     copy_databases(&backup, err) && copy_symbols(&backup, err) &&
		     finish(&backup, to, err);
	for (unsigned i = 0; i < backup.count; i++) {
		sqlite3_close_v2(backup.sources[i].db);
		free(backup.sources[i].name);
	}
	if (!ok && backup.partial[0])
		remove_tree(backup.partial, DEPTH_MAX + 2);
	if (backup.data_fd >= 0)
		close(backup.data_fd);
	free(backup.sources);
	return ok;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/page_checksums.h"

#include <endian.h>
#include <pthread.h>
#include <string.h>

#include "symbol-server/store/sqlite/page_format.h"

/* Opcodes below 100 are SQLite's own. */
enum { CONTROL_ARE = 0x66667000, CONTROL_AS };

enum checksums { UNKNOWN, ABSENT, PRESENT };

/* What SQLite has as its file: the real one's struct follows. */
struct checked_file {
	sqlite3_file base; /* first */
	enum checksums checksums;
	uint8_t *page; /* one, as it is written or read on the way */
	size_t room;
};

static sqlite3_vfs vfs;
static sqlite3_vfs *real_vfs;
static _Thread_local uint32_t failed_page;
static _Thread_local bool trusts_first;

static sqlite3_file *real_of(sqlite3_file *file)
{
	return (sqlite3_file *)((struct checked_file *)file + 1);
}

static bool make_room(struct checked_file *file, size_t bytes)
{
	uint8_t *page = file->room >= bytes ? file->page : sqlite3_realloc64(file->page, bytes);

	if (page && page != file->page)
		file->room = bytes;
	file->page = page ? page : file->page;
	return page;
}

/* Reads and writes of a whole page, which is how SQLite does them but for a header's fields. */
static bool is_page(int length, sqlite3_int64 offset)
{
	return length >= PAGE_BYTES_MIN && !(length & (length - 1)) && offset % length == 0;
}

static uint32_t page_number(int length, sqlite3_int64 offset)
{
	return (uint32_t)(offset / length + 1);
}

/* By the first page, or what was asked for while there is none. */
static enum checksums find_checksums(struct checked_file *file)
{
	sqlite3_file *real = real_of(&file->base);
	uint8_t header[PAGE_HEADER], end[PAGE_CHECKSUM];
	uint32_t bytes;

	if (file->checksums != UNKNOWN ||
	    real->pMethods->xRead(real, header, sizeof header, 0) != SQLITE_OK)
		return file->checksums;
	bytes = page_format_bytes(header);
	if (!bytes || real->pMethods->xRead(real, end, sizeof end, bytes - sizeof end) != SQLITE_OK)
		memset(end, 0, sizeof end);
	file->checksums = page_format_has(header, end) ? PRESENT : ABSENT;
	return file->checksums;
}

/* --- reading --- */

static int check(const uint8_t *page, int length, sqlite3_int64 offset)
{
	uint32_t number = page_number(length, offset);

	if (page_checksums_fit(page, (uint32_t)length, number) || (trusts_first && number == 1))
		return SQLITE_OK;
	failed_page = number;
	return SQLITE_IOERR_DATA;
}

/* Part of a page at the file's end is none; beyond it SQLite may read zeros. */
static int check_end(sqlite3_file *real, int length, sqlite3_int64 offset)
{
	sqlite3_int64 size;

	if (real->pMethods->xFileSize(real, &size) != SQLITE_OK || size <= offset)
		return SQLITE_IOERR_SHORT_READ;
	failed_page = page_number(length, offset);
	return SQLITE_IOERR_DATA;
}

/* SQLite 3.45 to 3.47 read overflow pages without the bytes that they keep for others. */
static int read_part(struct checked_file *file, void *bytes, int length, sqlite3_int64 offset)
{
	sqlite3_file *real = real_of(&file->base);
	int page = PAGE_BYTES_MIN, code;

	while (page < length)
		page *= 2;
	if (!make_room(file, (size_t)page))
		return SQLITE_IOERR_NOMEM;
	code = real->pMethods->xRead(real, file->page, page, offset);
	if (code == SQLITE_OK)
		code = check(file->page, page, offset);
	else if (code == SQLITE_IOERR_SHORT_READ)
		code = check_end(real, page, offset);
	memcpy(bytes, file->page, (size_t)length);
	return code;
}

static int checked_read(sqlite3_file *base, void *bytes, int length, sqlite3_int64 offset)
{
	struct checked_file *file = (struct checked_file *)base;
	sqlite3_file *real = real_of(base);
	int code;

	if (length <= PAGE_HEADER || find_checksums(file) != PRESENT)
		return real->pMethods->xRead(real, bytes, length, offset);
	if (!is_page(length, offset))
		return read_part(file, bytes, length, offset);
	code = real->pMethods->xRead(real, bytes, length, offset);
	if (code == SQLITE_IOERR_SHORT_READ)
		return check_end(real, length, offset);
	return code == SQLITE_OK ? check(bytes, length, offset) : code;
}

/* --- writing --- */

static int write_page(struct checked_file *file, const void *bytes, int length,
		      sqlite3_int64 offset)
{
	sqlite3_file *real = real_of(&file->base);
	uint32_t number = page_number(length, offset);

	if (!make_room(file, (size_t)length))
		return SQLITE_IOERR_NOMEM;
	if (bytes)
		memcpy(file->page, bytes, (size_t)length);
	else
		memset(file->page, 0, (size_t)length);
	page_format_seal(file->page, (uint32_t)length, number);
	return real->pMethods->xWrite(real, file->page, length, offset);
}

/* Pages that SQLite leaves out as it makes the file larger: what is free needs no content, but
 * everything in the file has a checksum. */
static int fill_gap(struct checked_file *file, int length, sqlite3_int64 until)
{
	sqlite3_file *real = real_of(&file->base);
	sqlite3_int64 at = 0;
	int code = real->pMethods->xFileSize(real, &at);

	for (at -= at % length; code == SQLITE_OK && at < until; at += length)
		code = write_page(file, NULL, length, at);
	return code;
}

static int checked_write(sqlite3_file *base, const void *bytes, int length, sqlite3_int64 offset)
{
	struct checked_file *file = (struct checked_file *)base;
	sqlite3_file *real = real_of(base);
	int code;

	/* The first page decides, also anew: VACUUM writes one with room for checksums. */
	if (!offset && length >= PAGE_BYTES_MIN)
		file->checksums = page_format_keeps(bytes) ? PRESENT : ABSENT;
	if (!is_page(length, offset) || find_checksums(file) != PRESENT)
		return real->pMethods->xWrite(real, bytes, length, offset);
	code = fill_gap(file, length, offset);
	return code == SQLITE_OK ? write_page(file, bytes, length, offset) : code;
}

/* --- the rest of a file: as it is --- */

static int checked_close(sqlite3_file *base)
{
	struct checked_file *file = (struct checked_file *)base;
	sqlite3_file *real = real_of(base);

	sqlite3_free(file->page);
	file->page = NULL;
	return real->pMethods->xClose(real);
}

static int checked_truncate(sqlite3_file *base, sqlite3_int64 size)
{
	struct checked_file *file = (struct checked_file *)base;
	sqlite3_file *real = real_of(base);

	if (!size) /* begins anew */
		file->checksums = UNKNOWN;
	return real->pMethods->xTruncate(real, size);
}

static int checked_sync(sqlite3_file *base, int flags)
{
	return real_of(base)->pMethods->xSync(real_of(base), flags);
}

static int checked_size(sqlite3_file *base, sqlite3_int64 *size)
{
	return real_of(base)->pMethods->xFileSize(real_of(base), size);
}

static int checked_lock(sqlite3_file *base, int level)
{
	return real_of(base)->pMethods->xLock(real_of(base), level);
}

static int checked_unlock(sqlite3_file *base, int level)
{
	return real_of(base)->pMethods->xUnlock(real_of(base), level);
}

static int checked_is_reserved(sqlite3_file *base, int *is)
{
	return real_of(base)->pMethods->xCheckReservedLock(real_of(base), is);
}

static int checked_control(sqlite3_file *base, int code, void *argument)
{
	struct checked_file *file = (struct checked_file *)base;

	if (code == CONTROL_ARE) {
		*(enum checksums *)argument = find_checksums(file);
		return SQLITE_OK;
	}
	if (code == CONTROL_AS) {
		file->checksums = *(const enum checksums *)argument;
		return SQLITE_OK;
	}
	return real_of(base)->pMethods->xFileControl(real_of(base), code, argument);
}

static int checked_sector(sqlite3_file *base)
{
	return real_of(base)->pMethods->xSectorSize(real_of(base));
}

static int checked_traits(sqlite3_file *base)
{
	int traits = real_of(base)->pMethods->xDeviceCharacteristics(real_of(base));

#ifdef SQLITE_IOCAP_SUBPAGE_READ
	traits &= ~SQLITE_IOCAP_SUBPAGE_READ;
#endif
	return traits;
}

static int checked_shm_map(sqlite3_file *base, int region, int size, int extend, void volatile **at)
{
	return real_of(base)->pMethods->xShmMap(real_of(base), region, size, extend, at);
}

static int checked_shm_lock(sqlite3_file *base, int offset, int count, int flags)
{
	return real_of(base)->pMethods->xShmLock(real_of(base), offset, count, flags);
}

static void checked_shm_barrier(sqlite3_file *base)
{
	real_of(base)->pMethods->xShmBarrier(real_of(base));
}

static int checked_shm_unmap(sqlite3_file *base, int is_deleted)
{
	return real_of(base)->pMethods->xShmUnmap(real_of(base), is_deleted);
}

/* Version 2: pages are read, never mapped. */
static const sqlite3_io_methods methods = {
	.iVersion = 2,
	.xClose = checked_close,
	.xRead = checked_read,
	.xWrite = checked_write,
	.xTruncate = checked_truncate,
	.xSync = checked_sync,
	.xFileSize = checked_size,
	.xLock = checked_lock,
	.xUnlock = checked_unlock,
	.xCheckReservedLock = checked_is_reserved,
	.xFileControl = checked_control,
	.xSectorSize = checked_sector,
	.xDeviceCharacteristics = checked_traits,
	.xShmMap = checked_shm_map,
	.xShmLock = checked_shm_lock,
	.xShmBarrier = checked_shm_barrier,
	.xShmUnmap = checked_shm_unmap,
};

/* --- the VFS --- */

/* Logs and temporary files are the real VFS's own. */
static int checked_open(sqlite3_vfs *unused, const char *name, sqlite3_file *base, int flags,
			int *got_flags)
{
	struct checked_file *file = (struct checked_file *)base;
	sqlite3_file *real = real_of(base);
	int code;

	(void)unused;
	if (!(flags & SQLITE_OPEN_MAIN_DB))
		return real_vfs->xOpen(real_vfs, name, base, flags, got_flags);
	memset(file, 0, sizeof *file);
	real->pMethods = NULL;
	code = real_vfs->xOpen(real_vfs, name, real, flags, got_flags);
	if (real->pMethods) /* to be closed, also when it failed */
		file->base.pMethods = &methods;
	return code;
}

/* SQLite's VFS for Unix looks at its own struct in xOpen only: the other methods are copied. */
static void make_vfs(void)
{
	real_vfs = sqlite3_vfs_find(NULL);
	if (!real_vfs)
		return;
	vfs = *real_vfs;
	vfs.pNext = NULL;
	vfs.zName = "farflame-checksums";
	vfs.szOsFile = (int)sizeof(struct checked_file) + real_vfs->szOsFile;
	vfs.xOpen = checked_open;
	if (sqlite3_vfs_register(&vfs, 0) != SQLITE_OK)
		real_vfs = NULL;
}

const char *page_checksums_vfs(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_vfs);
	return real_vfs ? vfs.zName : NULL;
}

/* --- what a database has --- */

void page_checksums_wish(sqlite3 *db)
{
	int bytes = PAGE_CHECKSUM;

	sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &bytes);
}

static enum checksums checksums_of(sqlite3 *db)
{
	enum checksums are = UNKNOWN;

	sqlite3_file_control(db, "main", CONTROL_ARE, &are);
	return are;
}

bool page_checksums_are(sqlite3 *db)
{
	return checksums_of(db) == PRESENT;
}

void page_checksums_as(sqlite3 *to, sqlite3 *from)
{
	enum checksums are = checksums_of(from);

	sqlite3_file_control(to, "main", CONTROL_AS, &are);
}

void page_checksums_trust_first(bool trusts)
{
	trusts_first = trusts;
}

uint32_t page_checksums_failed(void)
{
	return failed_page;
}

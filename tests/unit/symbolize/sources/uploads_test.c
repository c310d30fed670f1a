/* SPDX-License-Identifier: Apache-2.0 */
/* Files as compilers, strip, dwp and dwz leave them, sent in any order. */
#include "symbol-server/symbolize/sources/uploads.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/unit/symbolize/sources/readelf_id.h"

static char folder[] = "/tmp/uploads-test-XXXXXX";
static struct uploads *uploads;
static struct error err;

static bool shell(const char *command)
{
	char line[4096];

	snprintf(line, sizeof(line), "cd %s && { %s; }", folder, command);
	return system(line) == 0;
}

static bool put(const char *name, const struct build_id *id, bool *is_new)
{
	struct upload_file *file;
	char path[256], bytes[4096];
	bool ok = true;
	ssize_t got;
	int fd;

	err = (struct error){0};
	file = upload_file_open(uploads, 0, &err);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY);
	while (ok && (got = read(fd, bytes, sizeof(bytes))) > 0)
		ok = upload_file_write(file, bytes, (size_t)got, &err);
	close(fd);
	ok = ok && upload_file_keep(file, id, false, is_new, &err);
	upload_file_close(file);
	return ok;
}

/* Is one of the files kept under that id this very one? */
static bool has(const struct build_id *id, const char *name)
{
	int fds[UPLOAD_KINDS];
	size_t count = uploads_open_files(uploads, id, fds);
	bool is_there = false;
	char line[512];

	for (size_t i = 0; i < count; i++) {
		snprintf(line, sizeof(line), "cmp -s /proc/%d/fd/%d %s/%s", getpid(), fds[i],
			 folder, name);
		is_there |= system(line) == 0;
		close(fds[i]);
	}
	return is_there;
}

static size_t count_of(const struct build_id *id)
{
	int fds[UPLOAD_KINDS];
	size_t count = uploads_open_files(uploads, id, fds);

	for (size_t i = 0; i < count; i++)
		close(fds[i]);
	return count;
}

static void test_complete_each_other(void)
{
	struct build_id id = id_of(folder, "one");
	bool is_new;

	CHECK(put("one.stripped", &id, &is_new) && is_new);
	CHECK(put("one.stripped", &id, &is_new) && !is_new);
	CHECK(put("one.symbols", &id, &is_new) && is_new); /* names without code: beside it */
	CHECK(has(&id, "one.stripped") && has(&id, "one.symbols"));
	CHECK(put("one.debug", &id, &is_new) && is_new); /* instead of the names */
	CHECK(has(&id, "one.stripped") && has(&id, "one.debug") && !has(&id, "one.symbols"));
	CHECK(put("one.symbols", &id, &is_new) && !is_new);
	CHECK(has(&id, "one.debug"));
	CHECK(put("one", &id, &is_new) && is_new); /* both in one */
	CHECK(has(&id, "one") && has(&id, "one.stripped"));
	CHECK(put("one.debug", &id, &is_new) && !is_new);
	CHECK(put("one.dwp", &id, &is_new) && is_new);
	CHECK(put("one.dwp", &id, &is_new) && !is_new);
	CHECK(has(&id, "one.dwp") && has(&id, "one"));
	CHECK_NUMBER(count_of(&id), 3);
}

static void test_refused(void)
{
	struct build_id id = id_of(folder, "one"), other = id_of(folder, "two");
	bool is_new;

	CHECK(!put("one", &other, &is_new) && err.kind == ERROR_CONFLICT);
	CHECK(!put("hashed", &other, &is_new) && err.kind == ERROR_CONFLICT);
	CHECK(!put("one.c", &id, &is_new) && err.kind == ERROR_FORMAT);
	CHECK(!put("cut", &id, &is_new) && err.kind == ERROR_FORMAT);
	CHECK(!put("one.dwo", &id, &is_new) && err.kind == ERROR_FORMAT);
	CHECK(strstr(err.message, ".dwp") != NULL);
	CHECK(!put("large", &id, &is_new) && err.kind == ERROR_LIMIT);
	CHECK_NUMBER(count_of(&other), 0);
	CHECK(shell("test -z \"$(ls uploads | grep receiving)\""));
}

static void test_dwz(void)
{
	struct build_id alt = id_of(folder, "alt"), two = id_of(folder, "two");
	bool is_new;

	CHECK(put("alt", &alt, &is_new) && is_new);
	CHECK(has(&alt, "alt"));
	CHECK(!put("alt", &two, &is_new) && err.kind == ERROR_CONFLICT);
	CHECK(put("two.dwz", &two, &is_new) && is_new); /* a part of it is in the other file */
	CHECK(put("two.debug", &two, &is_new) && is_new);
	CHECK(has(&two, "two.debug"));
	CHECK(put("two.dwz", &two, &is_new) && !is_new);
}

static void test_half_received(void)
{
	struct upload_file *file;
	struct build_id id = id_of(folder, "one");

	CHECK(shell("echo half > uploads/receiving-77"));
	uploads_close(uploads);
	uploads = uploads_open(folder, 1 << 20, 0, &err);
	CHECK(uploads != NULL);
	CHECK(shell("test ! -e uploads/receiving-77"));
	CHECK_NUMBER(count_of(&id), 3);
	file = upload_file_open(uploads, 0, &err);
	CHECK(file && upload_file_write(file, "abc", 3, &err));
	upload_file_close(file);
	CHECK(shell("test -z \"$(ls uploads | grep receiving)\""));
}

static unsigned gone;

static void note_gone(void *context, const struct build_id *id)
{
	(void)context, (void)id;
	gone++;
}

static void age(const struct build_id *id, unsigned seconds)
{
	char line[400], hex[BUILD_ID_HEX];

	snprintf(line, sizeof(line), "touch -a -d '%u seconds ago' uploads/%s/*", seconds,
		 build_id_format(id, hex));
	CHECK(shell(line));
}

/* What all take has a limit: who was used last stays, who was used longest ago goes. */
static void test_room(void)
{
	struct build_id used = id_of(folder, "one"), unused = id_of(folder, "two");
	struct build_id fresh = id_of(folder, "three");
	struct uploads_counts now;
	bool is_new;

	CHECK(shell("head -c 6000000 /dev/urandom > noise && rm -r uploads && "
		    "for f in one two three; do cat $f noise > $f.large; done"));
	uploads_close(uploads);
	uploads = uploads_open(folder, 8 << 20, 16 << 20, &err);
	uploads_watch(uploads, note_gone, NULL);
	CHECK(put("one.large", &used, &is_new) && put("two.large", &unused, &is_new));
	uploads_count(uploads, &now);
	CHECK(now.files == 2 && now.bytes > 12000000 && now.bytes < 13000000);
	age(&used, 2000);
	age(&unused, 1000);
	CHECK_NUMBER(count_of(&used), 1); /* which is a use */
	CHECK(put("three.large", &fresh, &is_new));
	CHECK_NUMBER(gone, 1);
	CHECK_NUMBER(uploads_usage(uploads, &unused).files, 0);
	CHECK_NUMBER(uploads_usage(uploads, &used).files, 1);
	uploads_count(uploads, &now);
	CHECK(now.evicted_files == 1 && now.files == 2 && now.bytes < 13000000);
	CHECK(!put("noise", &fresh, &is_new) && err.kind == ERROR_FORMAT);
	CHECK(!upload_file_open(uploads, 9 << 20, &err) && err.kind == ERROR_LIMIT);
	CHECK_NUMBER(uploads_remove(uploads, &used).files, 1);
	CHECK_NUMBER(uploads_remove(uploads, &fresh).files, 1);
	uploads_count(uploads, &now);
	CHECK(now.files == 0 && now.bytes == 0 && gone == 3);
}

/* Zeros take no room, and are there nevertheless. */
static void test_sparse(void)
{
	struct build_id id = id_of(folder, "three");
	struct upload_usage usage;
	bool is_new;

	CHECK(shell("cp three three.zeros && truncate -s +500K three.zeros && echo end >> "
		    "three.zeros && "
		    "truncate -s 800K three.zeros"));
	CHECK(put("three.zeros", &id, &is_new) && is_new);
	CHECK(has(&id, "three.zeros"));
	usage = uploads_usage(uploads, &id);
	CHECK(usage.files == 1 && usage.bytes < 100000);
}

static void check_kind(const char *name, enum upload_kind want)
{
	struct build_id id = id_of(folder, name);
	enum upload_kind kind = UPLOAD_KINDS;
	char path[256];
	unsigned worth;
	int fd;

	if (!id.length)
		id = id_of(folder, "one");
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY);
	CHECK(upload_sniff(fd, &id, &kind, &worth, &err));
	CHECK_NUMBER(kind, want);
	close(fd);
}

static bool make_files(void)
{
	return shell(
		"exec 2>log; "
		"echo '#include <stdlib.h>\nint one(int x) { return rand() * x; } "
		"int main(void) { return one(0); }' > one.c && sed s/one/two/g one.c > two.c && "
		"cc -gdwarf-4 -gsplit-dwarf -c one.c -o one.o && cc -gdwarf-4 -g one.o -o one "
		"-Wl,--build-id && dwp -o one.dwp one.dwo && "
		"objcopy --strip-all one one.stripped && objcopy --only-keep-debug one one.debug "
		"&& "
		"objcopy --only-keep-debug one t && objcopy --strip-debug t one.symbols && "
		"head -c 1000 one > cut && cp one large && truncate -s 2M large && "
		"cc -g -Wl,--build-id=none one.c -o hashed && "
		"for f in two three; do sed s/one/$f/g one.c > $f.c && cc -g -O0 $f.c -o $f "
		"-Wl,--build-id && objcopy --only-keep-debug $f $f.debug && cp $f.debug $f.dwz; "
		"done && dwz -m alt two.dwz three.dwz");
}

int main(void)
{
	if (!mkdtemp(folder))
		return 1;
	if (!CHECK(make_files()))
		shell("cat log | sed 's/^/# /'");
	uploads = uploads_open(folder, 1 << 20, 0, &err);
	CHECK(uploads != NULL);
	check_kind("one", UPLOAD_DEBUG);
	check_kind("one.stripped", UPLOAD_EXECUTABLE);
	check_kind("one.debug", UPLOAD_DEBUG);
	check_kind("one.symbols", UPLOAD_DEBUG);
	check_kind("one.dwp", UPLOAD_DWP);
	check_kind("alt", UPLOAD_ALT);
	test_complete_each_other();
	test_refused();
	test_dwz();
	test_half_received();
	test_room();
	test_sparse();
	uploads_close(uploads);
	shell("rm -rf *");
	rmdir(folder);
	return checks_done();
}

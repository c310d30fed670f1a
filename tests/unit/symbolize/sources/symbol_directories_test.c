/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of symbol files as people have them. What is in a file is known from the
 * tools that made it. */
#include "symbol-server/symbolize/sources/symbol_directories.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#include "symbol-server/symbolize/symbolizer.h"
#include "symbol-server/symbolize/worker.h"
#include "tests/check.h"
#include "tests/unit/symbolize/sources/readelf_id.h"

enum { ROOM = 8 };

static char folder[] = "/tmp/symbol-directories-test-XXXXXX";
static char tree[96];

static pthread_mutex_t found_lock = PTHREAD_MUTEX_INITIALIZER;
static struct build_id found_ids[512];
static size_t found_count;

static bool shell(const char *command)
{
	char line[4096];

	snprintf(line, sizeof(line), "cd %s && { %s; }", folder, command);
	return system(line) == 0;
}

static void note_found(void *context, const struct build_id *id)
{
	(void)context;
	pthread_mutex_lock(&found_lock);
	if (found_count < sizeof(found_ids) / sizeof(*found_ids))
		found_ids[found_count++] = *id;
	pthread_mutex_unlock(&found_lock);
}

static bool was_found(const struct build_id *id)
{
	bool was = false;

	pthread_mutex_lock(&found_lock);
	for (size_t i = 0; i < found_count; i++)
		was |= build_id_equal(&found_ids[i], id);
	pthread_mutex_unlock(&found_lock);
	return was;
}

static struct symbol_directories *start(void)
{
	const char *paths[] = {tree};
	struct symbol_directories_options options = {
		.paths = paths,
		.count = 1,
		.found = note_found,
	};
	struct error err = {0};
	struct symbol_directories *directories = symbol_directories_start(&options, &err);

	if (!directories) {
		printf("Bail out! %s\n", err.message);
		exit(1);
	}
	return directories;
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static struct symbol_directories_progress progress_of(struct symbol_directories *directories)
{
	struct symbol_directories_progress progress;

	symbol_directories_progress(directories, &progress);
	return progress;
}

static bool wait_read(struct symbol_directories *directories)
{
	for (int i = 0; i < 3000; i++) {
		if (symbol_directories_are_read(directories))
			return true;
		usleep(20 * 1000);
	}
	return false;
}

static bool wait_has(struct symbol_directories *directories, const struct build_id *id)
{
	for (int i = 0; i < 500; i++) {
		if (symbol_directories_has(directories, id))
			return true;
		usleep(20 * 1000);
	}
	return false;
}

static size_t close_all(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
	return count;
}

/* A busy machine may not open a file within the time that a silent file system gets: asked again,
 * it is there. */
static size_t open_wanted(struct symbol_directories *directories, const struct build_id *id,
			  int *fds, struct symbol_place *places, size_t wanted)
{
	size_t count = 0;

	for (int i = 0; i < 500; i++) {
		count = symbol_directories_open(directories, id, fds, places, ROOM);
		if (count >= wanted)
			break;
		close_all(fds, count);
		usleep(20 * 1000);
	}
	return count;
}

static size_t open_count(struct symbol_directories *directories, const struct build_id *id,
			 struct symbol_place *places, size_t wanted)
{
	int fds[ROOM];
	size_t count = open_wanted(directories, id, fds, places, wanted);

	close_all(fds, count);
	return count;
}

/* Does what was opened hold these very bytes? */
static bool is_same(int fd, const char *name)
{
	char line[512];

	snprintf(line, sizeof(line), "cmp -s /proc/%d/fd/%d %s/%s", getpid(), fd, folder, name);
	return system(line) == 0;
}

/* ---- plain files ---- */

static void test_tree(void)
{
	struct build_id one = id_of(folder, "one"), two = id_of(folder, "two"),
			outside = id_of(folder, "outside");
	static struct symbol_place places[ROOM];
	struct symbol_directories *directories;
	char want[256];

	CHECK(shell("mkdir -p tree/a/b tree/.build-id/ab && cp one tree/a/b/ && cp two tree/ && "
		    "echo text > tree/a/notes.txt && : > tree/empty && mkfifo tree/pipe && "
		    "ln -s .. tree/a/loop && ln -s ../outside tree/a/gone && "
		    "printf '\\177ELFrubbish' > tree/rubbish"));
	directories = start();
	CHECK(wait_read(directories));
	CHECK_NUMBER(open_count(directories, &one, places, 1), 1);
	snprintf(want, sizeof(want), "%s/a/b/one", tree);
	CHECK_TEXT(places[0].file, want);
	CHECK_NUMBER(open_count(directories, &two, NULL, 1), 1);
	CHECK(was_found(&one) && was_found(&two));
	CHECK(!symbol_directories_has(directories, &outside));
	CHECK_NUMBER(open_count(directories, &outside, NULL, 0), 0);

	struct symbol_directories_progress progress = progress_of(directories);

	CHECK(progress.first_pass_done && progress.passes == 1);
	CHECK_NUMBER(progress.elf_files, 2);
	CHECK_NUMBER(progress.files, 4); /* the empty one is none */
	CHECK_NUMBER(progress.links, 2);
	CHECK_NUMBER(progress.damaged, 1);
	CHECK(strstr(progress.last_refusal, "rubbish") != NULL);
	CHECK_NUMBER(progress.folders, 5);

	/* A link of a .build-id tree to a file inside is followed, one to the outside is not. */
	char hex[BUILD_ID_HEX], line[1024];

	build_id_format(&outside, hex);
	snprintf(line, sizeof(line),
		 "mkdir -p tree/.build-id/%.2s && ln -s ../../../outside "
		 "tree/.build-id/%.2s/%s.debug",
		 hex, hex, hex + 2);
	CHECK(shell(line));
	CHECK_NUMBER(open_count(directories, &outside, NULL, 0), 0);
	snprintf(line, sizeof(line),
		 "cp outside tree/a/inside && ln -sf ../../a/inside tree/.build-id/%.2s/%s.debug",
		 hex, hex + 2);
	CHECK(shell(line));
	CHECK_NUMBER(open_count(directories, &outside, NULL, 1), 1);

	/* Missed: read again soon. */
	symbol_directories_missed(directories);
	CHECK(wait_has(directories, &outside));
	CHECK(was_found(&outside));
	CHECK_NUMBER(open_count(directories, &outside, NULL, 1), 1);

	/* What is gone is gone, and what became another file is that one. */
	CHECK(shell("rm tree/two && cp two tree/a/b/one"));
	CHECK_NUMBER(open_count(directories, &one, NULL, 0), 0);
	symbol_directories_stop(directories);
	shell("rm -rf tree && mkdir tree");
}

/* Runs as root: nothing is unreadable, unless it is no longer there when it is opened. */
static void test_unreadable(void)
{
	struct symbol_directories *directories;

	if (geteuid() == 0) {
		SKIP("root may read everything");
		return;
	}
	CHECK(shell("cp one tree/ && mkdir tree/shut && cp two tree/shut && chmod 0 tree/shut"));
	directories = start();
	CHECK(wait_read(directories));
	CHECK_NUMBER(progress_of(directories).unreadable, 1);
	symbol_directories_stop(directories);
	shell("chmod 700 tree/shut; rm -rf tree && mkdir tree");
}

/* ---- by name ---- */

static void test_names(void)
{
	struct build_id split = id_of(folder, "split");
	struct symbol_directories *directories;
	char path[256];
	int fds[ROOM];
	size_t count;

	CHECK(shell("mkdir -p tree/x tree/obj/other && cp split split.dwp tree/x/ && "
		    "cp split-one.dwo tree/obj/ && cp split-two.dwo tree/obj/other/split-one.dwo"));
	directories = start();
	CHECK(wait_read(directories));
	count = symbol_directories_open_dwp(directories, &split, fds, ROOM);
	CHECK_NUMBER(count, 1);
	CHECK(count && is_same(fds[0], "split.dwp"));
	close_all(fds, count);

	snprintf(path, sizeof(path), "/build/elsewhere/obj/split-one.dwo");
	count = symbol_directories_open_dwo(directories, &split, path, fds, ROOM);
	CHECK_NUMBER(count, 2);
	CHECK(count && is_same(fds[0], "split-one.dwo"));
	close_all(fds, count);
	count = symbol_directories_open_dwo(directories, &split, "other/split-one.dwo", fds, ROOM);
	CHECK(count == 2 && is_same(fds[0], "split-two.dwo"));
	close_all(fds, count);
	CHECK_NUMBER(symbol_directories_open_dwo(directories, &split, "none.dwo", fds, ROOM), 0);
	symbol_directories_stop(directories);
	shell("rm -rf tree && mkdir tree");
}

static uint32_t crc_in(const char *name)
{
	struct elf_image *image = calloc(1, sizeof(*image));
	char path[256];
	uint32_t crc;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY);
	elf_image_read(fd, image, NULL);
	close(fd);
	crc = image->debuglink_crc;
	free(image);
	return crc;
}

/* objcopy wrote the checksum. */
static void test_link(void)
{
	struct build_id none = {0};
	struct symbol_directories *directories;
	uint32_t crc = crc_in("linked");
	int fds[ROOM];
	size_t count;

	CHECK(crc != 0);
	CHECK(shell("mkdir -p tree/usr/lib/debug/usr/bin tree/wrong && "
		    "cp linked.debug tree/usr/lib/debug/usr/bin/ && "
		    "cp one tree/wrong/ && cp hashed tree/wrong/linked.debug"));
	directories = start();
	CHECK(wait_read(directories));
	count = symbol_directories_open_link(directories, &none, "linked.debug", crc, fds, ROOM);
	CHECK_NUMBER(count, 1);
	CHECK(count && is_same(fds[0], "linked.debug"));
	close_all(fds, count);
	CHECK_NUMBER(progress_of(directories).wrong_checksums, 1);
	CHECK(strstr(progress_of(directories).last_refusal, "checksum") != NULL);
	CHECK_NUMBER(symbol_directories_open_link(directories, &none, "linked.debug", crc ^ 1, fds,
						  ROOM),
		     0);
	symbol_directories_stop(directories);
	shell("rm -rf tree && mkdir tree");
}

/* dwz made it, from two debug files. */
static void test_dwz(void)
{
	struct build_id alt = id_of(folder, "alt");
	struct symbol_directories *directories;
	int fds[ROOM];
	size_t count;

	CHECK(shell("mkdir -p tree/usr/lib/debug/.dwz/x && cp alt tree/usr/lib/debug/.dwz/x/"));
	directories = start();
	CHECK(wait_read(directories));
	count = open_wanted(directories, &alt, fds, NULL, 1);
	CHECK_NUMBER(count, 1);
	CHECK(count && is_same(fds[0], "alt"));
	close_all(fds, count);
	symbol_directories_stop(directories);
	shell("rm -rf tree && mkdir tree");
}

/* Not read, counted, and it is said who does. */
static void test_packages(void)
{
	struct symbol_directories *directories;
	struct symbol_directories_progress progress;

	CHECK(shell("rm -rf tree && mkdir tree && cp one tree/ && cp one tree/elf.deb && "
		    "echo hello > tree/text.rpm && cp one tree/two.ddeb && mkfifo tree/pipe.deb"));
	directories = start();
	CHECK(wait_read(directories));
	progress = progress_of(directories);
	CHECK_NUMBER(progress.packages, 3);
	CHECK_NUMBER(progress.elf_files, 1);
	CHECK(strstr(progress.last_refusal, "debuginfod") != NULL);
	symbol_directories_stop(directories);
	shell("rm -rf tree && mkdir tree");
}

/* ---- a file system that does not answer ---- */

/* FUSE with nobody behind it: whoever enters waits until the descriptor is closed. */
static int mount_silence(const char *path)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char data[128];

	if (fd < 0)
		return -1;
	snprintf(data, sizeof(data), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (!mount("silence", path, "fuse", MS_NOSUID | MS_NODEV, data))
		return fd;
	close(fd);
	return -1;
}

static void test_silence(void)
{
	struct build_id one = id_of(folder, "one"), two = id_of(folder, "two");
	struct symbol_directories *directories;
	char path[160];
	int64_t start_ms;
	int silence;

	CHECK(shell("mkdir -p tree/away && cp one tree/away/ && cp two tree/"));
	directories = start();
	CHECK(wait_read(directories));
	CHECK_NUMBER(open_count(directories, &one, NULL, 1), 1);
	snprintf(path, sizeof(path), "%s/away", tree);
	silence = mount_silence(path);
	if (silence < 0) {
		SKIP("no FUSE file system can be mounted here");
		symbol_directories_stop(directories);
		return;
	}
	pthread_mutex_lock(&found_lock);
	found_count = 0;
	pthread_mutex_unlock(&found_lock);
	start_ms = now_ms();
	CHECK_NUMBER(open_count(directories, &one, NULL, 0), 0);
	CHECK(now_ms() - start_ms < 500);
	CHECK_NUMBER(progress_of(directories).not_answering, 1);
	start_ms = now_ms(); /* known by now */
	for (int i = 0; i < 100; i++)
		open_count(directories, &two, NULL, 0);
	CHECK(symbol_directories_has(directories, &two));
	CHECK(now_ms() - start_ms < 1000); /* a hundred that do not wait 100 ms each */

	umount2(path, MNT_DETACH);
	close(silence); /* answers with an error */
	for (int i = 0; i < 250 && !was_found(&two); i++)
		usleep(20 * 1000);
	CHECK(was_found(&two)); /* asked for in vain meanwhile */
	CHECK_NUMBER(progress_of(directories).not_answering, 0);
	CHECK_NUMBER(open_count(directories, &one, NULL, 1), 1);

	/* One that does not answer to the end does not hold up the end. */
	silence = mount_silence(path);
	CHECK_NUMBER(open_count(directories, &one, NULL, 0), 0);
	start_ms = now_ms();
	symbol_directories_stop(directories);
	CHECK(now_ms() - start_ms < 6000);
	umount2(path, MNT_DETACH);
	close(silence);
	usleep(300 * 1000); /* its threads clean up */
	shell("rm -rf tree && mkdir tree");
}

static bool make_files(void)
{
	return shell(
		"exec 2>log; mkdir tree && "
		"echo '#include <stdlib.h>\nint one(int x) { return rand() * x; } int main(void) { "
		"return one(0); }' > one.c "
		"&& "
		"echo '#include <stdlib.h>\nint two(int x) { return rand() + x; } int main(void) { "
		"return two(0); }' > two.c "
		"&& "
		"cc -g -Wl,--build-id one.c -o one && cc -g -Wl,--build-id two.c -o two && "
		"cc -g -O1 -Wl,--build-id two.c -o outside && "
		"cc -g -Wl,--build-id=none one.c -o hashed && "
		"cc -gdwarf-4 -gsplit-dwarf -Wl,--build-id one.c -o split && "
		"mv split-one.dwo s1 2>/dev/null || mv one.dwo s1; "
		"cc -gdwarf-4 -gsplit-dwarf -O1 -Wl,--build-id two.c -o split2 && "
		"{ mv split2-two.dwo split-two.dwo 2>/dev/null || mv two.dwo split-two.dwo; } && "
		"mv s1 split-one.dwo && "
		/* dwp wants the file beside; what it is called there does not matter here */
		"dwp -o split.dwp split-one.dwo && "
		"cc -g -Wl,--build-id=none two.c -o linked && "
		"objcopy --only-keep-debug linked linked.debug && strip linked && "
		"objcopy --add-gnu-debuglink=linked.debug linked && "
		"objcopy --only-keep-debug outside 1.debug && "
		"objcopy --only-keep-debug two 2.debug && dwz -m alt 1.debug 2.debug");
}

int main(int argc, char **argv)
{
	symbol_worker_main(argc, argv);
	if (!mkdtemp(folder))
		return 1;
	snprintf(tree, sizeof(tree), "%s/tree", folder);
	if (!CHECK(make_files()))
		shell("cat log | sed 's/^/# /'");
	test_tree();
	test_unreadable();
	test_names();
	test_link();
	test_dwz();
	test_packages();
	test_silence();
	shell("rm -rf * .b*");
	rmdir(folder);
	return checks_done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of this host: ourselves, a program whose file was deleted, one in its own mount
 * namespace. Truth: the dynamic linker's own bases, and eu-readelf for the build-id. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>

#include "node-agent/processes/memory_map.h"
#include "node-agent/processes/process_files.h"
#include "node-agent/processes/process_table.h"
#include "tests/check.h"
#include "tests/unit/processes/fake_proc.h"

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* What a sample would carry, as far as /proc tells: 10 ms steps. */
static struct process_key key_of(pid_t pid)
{
	struct process_key key = {.tgid = (uint32_t)pid, .exec_id = 1};
	char path[64], text[1024];
	uint64_t ticks = 0;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	if (file && process_stat_start_time(text, fread(text, 1, sizeof text, file), &ticks))
		key.start_time_ns = ticks * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
	if (file)
		fclose(file);
	return key;
}

static void build_id_by_readelf(const char *path, char hex[BUILD_ID_HEX])
{
	char command[PATH_MAX + 64], line[512];
	FILE *pipe;

	hex[0] = '\0';
	snprintf(command, sizeof command, "eu-readelf -n '%s' 2>/dev/null", path);
	pipe = popen(command, "r");
	while (pipe && fgets(line, sizeof line, pipe))
		sscanf(line, " Build ID: %128s", hex);
	if (pipe)
		pclose(pipe);
}

static bool may_open_map_files(void)
{
	return geteuid() == 0;
}

static int find_base(struct dl_phdr_info *info, size_t size, void *wanted)
{
	const char *const *name = wanted;

	(void)size;
	if (!strstr(info->dlpi_name, name[0]))
		return 0;
	((const char **)wanted)[1] = (const char *)info->dlpi_addr;
	return 1;
}

static uint64_t base_of(const char *library)
{
	const char *wanted[2] = {library, NULL};

	dl_iterate_phdr(find_base, wanted);
	return (uint64_t)(uintptr_t)wanted[1];
}

static void test_ourselves(void)
{
	static const struct process_table_limits limits = {0};
	struct process_table *table = process_table_new(&limits, "/proc", NULL);
	struct process_key key = key_of(getpid());
	void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* the C library's own: ASan replaces some functions, not this one */
	uint64_t in_libc = (uint64_t)(uintptr_t)dlsym(RTLD_NEXT, "gnu_get_libc_version");
	uint64_t in_vdso = getauxval(AT_SYSINFO_EHDR) + 0x40;
	const uint64_t addresses[] = {(uint64_t)(uintptr_t)test_ourselves, in_libc + 1,
				      (uint64_t)(uintptr_t)code + 1, in_vdso + 1,
				      (uint64_t)(uintptr_t)&table};
	struct located_frame frames[5];
	char hex[BUILD_ID_HEX], theirs[BUILD_ID_HEX], self[PATH_MAX] = "";
	struct process_table_counters counters;
	uint64_t started;

	CHECK_NUMBER(process_table_locate(table, &key, now_ns(), addresses, 5, true, frames), 4);
	CHECK_NUMBER(frames[0].place, PLACE_FILE);
	CHECK_NUMBER(frames[0].address, addresses[0] - base_of("")); /* the program comes first */
	CHECK_NUMBER(frames[1].place, PLACE_FILE);
	CHECK_NUMBER(frames[1].address, in_libc - base_of("libc.so"));
	CHECK_TEXT(frames[1].executable->name, "libc.so.6");
	CHECK_NUMBER(frames[2].place, PLACE_ANONYMOUS);
	CHECK_NUMBER(frames[3].place, PLACE_FILE);
	CHECK_TEXT(frames[3].executable->name, "[vdso]");
	CHECK_NUMBER(frames[3].address, 0x40);
	CHECK(frames[3].executable->gnu.length && frames[3].executable->fd >= 0);
	CHECK_NUMBER(frames[4].place, PLACE_NOT_CODE);

	build_id_by_readelf(frames[1].executable->path, theirs);
	if (theirs[0])
		CHECK_TEXT(build_id_format(&frames[1].executable->gnu, hex), theirs);
	else
		SKIP("eu-readelf (elfutils) is not installed");
	if (readlink("/proc/self/exe", self, sizeof self - 1) > 0)
		CHECK_TEXT(process_table_info(table, &key, now_ns())->executable_path, self);

	/* warm: nothing is opened or read any more, and it is quick */
	started = now_ns();
	for (int i = 0; i < 1000; i++)
		process_table_locate(table, &key, started, addresses, 4, true, frames);
	printf("# %llu ns per sample of 4 frames\n",
	       (unsigned long long)(now_ns() - started) / 1000);
	process_table_counters(table, &counters);
	CHECK_NUMBER(counters.maps_read, 1);
	CHECK_NUMBER(counters.files_opened, 2);
	CHECK_NUMBER(counters.files_failed, 0);
	process_table_free(table);
	munmap(code, 4096);
}

static bool copy_file(const char *from, const char *to)
{
	char command[2 * PATH_MAX + 32];

	snprintf(command, sizeof command, "cp -L '%s' '%s'", from, to);
	return system(command) == 0;
}

/* The start of the program's executable mapping and its file offset, from maps. */
static bool find_code(pid_t pid, const char *name, struct memory_row *row)
{
	static char text[1 << 16];
	char path[64];
	const char *at = text;
	size_t length;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
	file = fopen(path, "r");
	length = file ? fread(text, 1, sizeof text, file) : 0;
	if (file)
		fclose(file);
	while (memory_map_next(&at, text + length, row) == MEMORY_ROW)
		if (row->is_executable && strstr(row->path, name))
			return true;
	return false;
}

/* Waits until the child runs the copied program. */
static bool wait_for_code(pid_t pid, const char *name, struct memory_row *row)
{
	for (int i = 0; i < 500; i++) {
		if (find_code(pid, name, row))
			return true;
		usleep(10000);
	}
	return false;
}

static void check_sleeper(pid_t pid, const char *name)
{
	static const struct process_table_limits limits = {0};
	struct process_table *table = process_table_new(&limits, "/proc", NULL);
	struct process_key key = key_of(pid);
	struct located_frame frame = {.place = PLACE_UNKNOWN};
	char hex[BUILD_ID_HEX], theirs[BUILD_ID_HEX];
	static struct memory_row row;
	struct stat st;
	uint64_t address;

	if (!CHECK(wait_for_code(pid, name, &row)))
		goto out;
	address = row.start + 0x100;
	CHECK_NUMBER(process_table_locate(table, &key, now_ns(), &address, 1, true, &frame), 1);
	CHECK_NUMBER(frame.place, PLACE_FILE);
	if (frame.place != PLACE_FILE)
		goto out;
	build_id_by_readelf("/bin/sleep", theirs);
	if (theirs[0])
		CHECK_TEXT(build_id_format(&frame.executable->gnu, hex), theirs);
	else
		SKIP("eu-readelf (elfutils) is not installed");
	CHECK_TEXT(frame.executable->name, name);
	CHECK(!fstat(frame.executable->fd, &st) && st.st_size > 0);
	CHECK(strstr(process_table_info(table, &key, now_ns())->executable_path, name) != NULL);

	/* the descriptor is the executable's, not the process' */
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	CHECK(!fstat(frame.executable->fd, &st) && st.st_size > 0);
	CHECK_NUMBER(process_table_locate(table, &key, now_ns(), &address, 1, true, &frame), 1);
	CHECK_NUMBER(frame.place, PLACE_FILE);
out:
	process_table_free(table);
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_deleted_program(void)
{
	static struct memory_row row;
	char path[PATH_MAX];
	pid_t pid;

	fake_path(path, "deleted-sleeper");
	if (!may_open_map_files() || !copy_file("/bin/sleep", path)) {
		SKIP("a deleted file is only reached through map_files, which wants root");
		return;
	}
	pid = fork();
	if (!pid) {
		execl(path, path, "60", NULL);
		_exit(127);
	}
	wait_for_code(pid, "deleted-sleeper", &row);
	unlink(path);
	check_sleeper(pid, "deleted-sleeper");
	end_child(pid);
}

/* The program is on a file system that only its own mount namespace has. */
static void test_mount_namespace(void)
{
	char folder[PATH_MAX], path[PATH_MAX + 32];
	pid_t pid;

	fake_path(folder, "private/x");
	*strrchr(folder, '/') = '\0';
	snprintf(path, sizeof path, "%s/private-sleeper", folder);
	if (!may_open_map_files()) {
		SKIP("a mount namespace of its own wants root");
		return;
	}
	pid = fork();
	if (!pid) {
		if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("none", folder, "tmpfs", 0, NULL) || !copy_file("/bin/sleep", path))
			_exit(126);
		execl(path, path, "60", NULL);
		_exit(127);
	}
	usleep(300000);
	if (waitpid(pid, NULL, WNOHANG) == pid) {
		SKIP("no mount namespace can be made here");
		return;
	}
	CHECK(access(path, F_OK) && errno == ENOENT); /* we do not see it */
	check_sleeper(pid, "private-sleeper");
	end_child(pid);
}

int main(void)
{
	fake_make();
	if (access("/proc/self/maps", R_OK))
		SKIP("/proc is not mounted");
	else
		test_ourselves();
	test_deleted_program();
	test_mount_namespace();
	fake_clean();
	return checks_done();
}

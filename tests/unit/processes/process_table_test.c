/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of a made-up /proc, whose file is golden_process.h's. */
#include "node-agent/processes/process_table.h"
#include "node-agent/processes/processes.h"

#include <sys/sysmacros.h>

#include "bpf/unwind_rows.h"
#include "bpf/frames.h"
#include "tests/check.h"
#include "tests/unit/processes/golden_process.h"

#define GNU_HEX "00112233445566778899aabbccddeeff01234567"

/* A process that maps the golden file's code at base + 0x1000. */
static void fake_process(struct process_key key, uint64_t base, bool has_map_files)
{
	char name[PATH_MAX];

	snprintf(name, sizeof name, "proc/%u/stat", key.tgid);
	fake_file(
		name,
		"%u (a) b c) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %llu 0 0 18446744073709551615",
		key.tgid, (unsigned long long)(key.start_time_ns / TICK));
	snprintf(name, sizeof name, "proc/%u/maps", key.tgid);
	fake_file(name,
		  "%llx-%llx r--p 00000000 %x:%02x %llu   %s\n"
		  "%llx-%llx r-xp 00000000 %x:%02x %llu   %s\n"
		  "%llx-%llx rwxp 00000000 00:00 0 \n",
		  (long long)base, (long long)base + 0x1000, 8, 1,
		  (unsigned long long)golden_stat.st_ino, golden, (long long)base + 0x1000,
		  (long long)base + 0x2000, 8, 1, (unsigned long long)golden_stat.st_ino, golden,
		  (long long)base + 0x10000, (long long)base + 0x11000);
	snprintf(name, sizeof name, "proc/%u/cgroup", key.tgid);
	fake_file(name, "0::/system.slice/web.service\n");
	snprintf(name, sizeof name, "proc/%u/exe", key.tgid);
	fake_link(name, golden);
	snprintf(name, sizeof name, "proc/%u/root", key.tgid);
	fake_link(name, "/");
	fake_status(key.tgid);
	snprintf(name, sizeof name, "proc/%u/map_files/%llx-%llx", key.tgid,
		 (long long)base + 0x1000, (long long)base + 0x2000);
	if (has_map_files)
		fake_link(name, golden);
}

static void remove_process(uint32_t tgid)
{
	static const char *const names[] = {"stat", "status", "maps", "cgroup", "exe", "root"};
	char name[64], path[PATH_MAX], aside[PATH_MAX + 16];
	static int number;

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		snprintf(name, sizeof name, "proc/%u/%s", tgid, names[i]);
		fake_remove(name);
	}
	snprintf(name, sizeof name, "proc/%u", tgid);
	fake_path(path, name);
	snprintf(aside, sizeof aside, "%s.gone%d", path, number++);
	if (rename(path, aside))
		abort();
}

static struct process_table *new_table(void)
{
	static const struct process_table_limits limits = {0};

	return process_table_new(&limits, fake_proc, NULL);
}

static void check_golden_frame(const struct located_frame *frame, uint64_t address)
{
	char hex[BUILD_ID_HEX];

	CHECK_NUMBER(frame->place, PLACE_FILE);
	if (frame->place != PLACE_FILE)
		return;
	CHECK_NUMBER(frame->address, address);
	CHECK_TEXT(build_id_format(&frame->executable->gnu, hex), GNU_HEX);
	CHECK_TEXT(frame->executable->go_id, "abc123/def456/ghi78");
	CHECK_TEXT(frame->executable->name, "little64.elf");
	CHECK_NUMBER(frame->executable->htlhash.length, FILE_HASH_BYTES);
	CHECK_NUMBER(frame->executable->start, 0x2300);
	CHECK_NUMBER(frame->executable->limit, 0x2400);
	CHECK_NUMBER(frame->executable->file_offset, 0x300);
	CHECK_NUMBER(frame->executable->entry, 0x2340);
	CHECK(frame->executable->fd >= 0);
}

static void test_known_process(bool has_map_files)
{
	struct process_table *table = new_table();
	struct process_key key = key_of(100, 0, 1);
	const uint64_t addresses[] = {0x501340, 0x501350, 0x510010, 0x999999, 0x501340};
	/* Of two words each, the second of which may be anything. */
	const uint64_t java[] = {
		0x501340 | (uint64_t)STACK_FRAME_JAVA_COMPILED << STACK_FRAME_KIND_SHIFT,
		0x501340,
		0x501350,
		(uint64_t)STACK_FRAME_JAVA_INTERPRETED << STACK_FRAME_KIND_SHIFT,
		0,
		0x999999};
	struct located_frame frames[5];
	struct process_table_counters counters;
	const struct process_info *info;

	fake_process(key, 0x500000, has_map_files);
	CHECK_NUMBER(process_table_locate(table, &key, at(10), addresses, 5, true, frames), 3);
	check_golden_frame(&frames[0], 0x2340);
	check_golden_frame(&frames[1], 0x234f); /* a return address: one less */
	CHECK_NUMBER(frames[2].place, PLACE_ANONYMOUS);
	CHECK_NUMBER(frames[3].place, PLACE_NOT_CODE);
	CHECK_NUMBER(frames[4].place, PLACE_NOT_CODE);
	CHECK_NUMBER(process_table_locate(table, &key, at(10), addresses, 1, false, frames), 1);
	CHECK_NUMBER(frames[0].address, 0x233f);
	CHECK_NUMBER(process_table_locate(table, &key, at(10), java, 6, true, frames), 3);
	CHECK_NUMBER(frames[0].place, PLACE_JAVA);
	CHECK_NUMBER(frames[0].address, 0);
	check_golden_frame(&frames[1], 0x234f);
	CHECK_NUMBER(frames[2].place, PLACE_JAVA);
	CHECK_NUMBER(frames[2].address, 3);
	CHECK_NUMBER(frames[3].place, PLACE_NOT_CODE);
	CHECK(process_table_executable(table, 1) == frames[1].executable);
	CHECK(!process_table_executable(table, 2) && !process_table_executable(table, 0));

	info = process_table_info(table, &key, at(10));
	CHECK_TEXT(info->executable_path, golden);
	CHECK_TEXT(info->service, "web");
	CHECK_TEXT(info->container_id, "");
	process_table_counters(table, &counters);
	CHECK_NUMBER(counters.files_opened, 1);
	CHECK_NUMBER(counters.maps_failed, 0);
	remove_process(100);
	process_table_free(table);
}

/* A stack that ends in junk asks for maps again, but less and less often. */
static void test_back_off(void)
{
	struct process_table *table = new_table();
	struct process_key key = key_of(100, 0, 1);
	const uint64_t junk = 0x77777000;
	struct process_table_counters counters;
	struct located_frame frame;

	fake_process(key, 0x500000, true);
	for (unsigned ms = 0; ms < 20000; ms += 10)
		process_table_locate(table, &key, at(ms), &junk, 1, true, &frame);
	process_table_counters(table, &counters);
	/* at 0, then 100 ms after, 200, 400 … 12.8 s: 8 within 20 s */
	CHECK_NUMBER(counters.maps_read, 8);
	CHECK_NUMBER(counters.maps_backed_off, 2000 - 8);

	/* a new mapping is found at the next read, and that makes the way free again */
	fake_process(key, 0x77776000, true);
	CHECK_NUMBER(process_table_locate(table, &key, at(60000), &junk, 1, true, &frame), 1);
	CHECK_NUMBER(frame.place, PLACE_FILE);
	remove_process(100);
	process_table_free(table);
}

static void test_other_process_of_the_same_pid(void)
{
	struct process_table *table = new_table();
	struct process_key old = key_of(100, 0, 1), new = key_of(100, 5000, 1);
	const uint64_t address = 0x501340;
	struct located_frame frame;

	fake_process(new, 0x500000, true); /* /proc shows the later one already */
	CHECK_NUMBER(process_table_locate(table, &old, at(10), &address, 1, true, &frame), 0);
	CHECK_NUMBER(frame.place, PLACE_UNKNOWN);
	CHECK_TEXT(process_table_info(table, &old, at(10))->executable_path, "");
	CHECK_NUMBER(process_table_locate(table, &new, at(5010), &address, 1, true, &frame), 1);
	CHECK_NUMBER(frame.place, PLACE_FILE);
	remove_process(100);
	process_table_free(table);
}

static struct mapping_event golden_event(uint32_t tgid, uint64_t base, unsigned ms,
					 bool has_build_id)
{
	struct mapping_event event = {
		.time_ns = at(ms),
		.start = base + 0x1000,
		.length = 0x1000,
		.tgid = tgid,
		.path = golden,
	};

	if (has_build_id) {
		build_id_parse(&event.build_id, GNU_HEX, strlen(GNU_HEX));
	} else {
		event.inode = golden_stat.st_ino;
		event.device_major = major(golden_stat.st_dev);
		event.device_minor = minor(golden_stat.st_dev);
	}
	return event;
}

/* Programs too short for anybody to read their /proc: only events tell of them. */
static void test_short_programs(bool has_build_id)
{
	struct process_table *table = new_table();
	const uint64_t address = 0x501340;
	struct located_frame frame;
	struct process_table_counters counters;

	for (uint32_t tgid = 200; tgid < 210; tgid++) {
		unsigned ms = (tgid - 200) * 50;
		struct process_key key = key_of(tgid, ms, 2);
		struct mapping_event event = golden_event(tgid, 0x500000, ms + 2, has_build_id);

		process_table_fork(table, tgid, 1, at(ms));
		process_table_exec(table, tgid, at(ms + 1));
		process_table_mapping(table, &event);
		process_table_exit(table, tgid, at(ms + 40));
		CHECK_NUMBER(
			process_table_locate(table, &key, at(ms + 20), &address, 1, true, &frame),
			1);
		CHECK_NUMBER(frame.place, PLACE_FILE);
		CHECK_NUMBER(frame.address, 0x2340);
		CHECK_TEXT(process_table_info(table, &key, at(ms + 20))->executable_path, golden);
	}
	process_table_counters(table, &counters);
	CHECK_NUMBER(counters.files_opened, 1);
	CHECK_NUMBER(counters.files_failed, 0);
	process_table_free(table);
}

/* The first sample of a program is one of its execve(), without user frames, told after a sample of
 * another process that is older than the exec. */
static void test_first_sample_without_frames(void)
{
	struct process_table *table = new_table();
	struct process_key other = key_of(100, 0, 1), key = key_of(220, 20, 2);
	struct mapping_event event = golden_event(220, 0x500000, 22, true);
	const uint64_t address = 0x501340;
	struct located_frame frame;

	fake_process(other, 0x500000, true);
	process_table_fork(table, 220, 100, at(20));
	process_table_exec(table, 220, at(21));
	process_table_mapping(table, &event);
	CHECK_NUMBER(process_table_locate(table, &other, at(20), &address, 1, true, &frame), 1);
	CHECK_TEXT(process_table_info(table, &key, at(23))->executable_path, golden);
	CHECK_NUMBER(process_table_locate(table, &key, at(24), &address, 1, true, &frame), 1);
	check_golden_frame(&frame, 0x2340);
	remove_process(100);
	process_table_free(table);
}

/* Mappings that nobody told of, and a process whose directory was not to be had for a while: what
 * is sampled on has its maps read, less and less often. */
static void test_what_runs_is_read_again(void)
{
	struct process_table *table = new_table();
	struct process_key key = key_of(230, 0, 2);
	struct process_table_counters counters;
	const uint64_t address = 0x501340;
	struct located_frame frame;

	process_table_exec(table, 230, at(1));
	for (unsigned ms = 10; ms < 20000; ms += 10)
		CHECK_NUMBER(process_table_locate(table, &key, at(ms), &address, 1, true, &frame),
			     0);
	process_table_counters(table, &counters);
	CHECK(counters.maps_failed > 4 && counters.maps_failed < 10);
	CHECK_TEXT(process_table_info(table, &key, at(20000))->service, "");
	fake_process(key, 0x500000, true);
	CHECK_NUMBER(process_table_locate(table, &key, at(60000), &address, 1, true, &frame), 1);
	check_golden_frame(&frame, 0x2340);
	CHECK_TEXT(process_table_info(table, &key, at(60000))->service, "web");
	remove_process(230);
	process_table_free(table);
}

/* The path has another file by now: not the one that ran, so nothing is said. */
static void test_replaced_file_is_not_taken(void)
{
	struct process_table *table = new_table();
	struct mapping_event by_id = golden_event(300, 0x500000, 2, true);
	struct mapping_event by_inode = golden_event(301, 0x500000, 2, false);
	struct process_key key = key_of(300, 0, 2);
	const uint64_t address = 0x501340;
	struct located_frame frame;
	struct process_table_counters counters;

	by_id.path = by_inode.path = "/bin/sh";
	process_table_exec(table, 300, at(1));
	process_table_mapping(table, &by_id);
	process_table_exec(table, 301, at(1));
	process_table_mapping(table, &by_inode);
	CHECK_NUMBER(process_table_locate(table, &key, at(5), &address, 1, true, &frame), 1);
	CHECK_NUMBER(frame.place, PLACE_UNKNOWN);
	key.tgid = 301;
	CHECK_NUMBER(process_table_locate(table, &key, at(5), &address, 1, true, &frame), 1);
	CHECK_NUMBER(frame.place, PLACE_UNKNOWN);
	process_table_counters(table, &counters);
	CHECK(counters.files_failed >= 2);
	process_table_free(table);
}

static const struct executable *executable_by(struct process_table *table, uint32_t tgid,
					      const struct mapping_event *event)
{
	struct process_key key = key_of(tgid, 0, 2);
	const uint64_t address = 0x501340;
	struct located_frame frame;

	process_table_exec(table, tgid, at(1));
	process_table_mapping(table, event);
	if (process_table_locate(table, &key, at(5), &address, 1, true, &frame) != 1)
		return NULL;
	return frame.place == PLACE_FILE ? frame.executable : NULL;
}

/* A private file with the path and the build-id that a process had which is gone: whether it was
 * that process' file, or that of another root, nobody can say. By no way through a link. */
static void test_private_file_is_not_sent(void)
{
	struct process_table *table = new_table();
	struct mapping_event by_id = golden_event(310, 0x500000, 2, true);
	struct mapping_event by_inode = golden_event(311, 0x500000, 2, false);
	struct mapping_event by_link = golden_event(312, 0x500000, 2, true);
	const struct executable *found;
	char path[PATH_MAX], link[PATH_MAX], bytes[4096];
	struct stat st;
	FILE *file = fopen(golden, "rb");

	fake_bytes("closed/golden", bytes, fread(bytes, 1, sizeof bytes, file));
	fclose(file);
	fake_path(path, "closed/golden");
	chmod(path, 0600);
	stat(path, &st);
	fake_link("open", "closed");
	fake_path(link, "open");
	strcat(link, "/golden");
	by_id.path = by_inode.path = path;
	by_link.path = link;
	CHECK(!executable_by(table, 312, &by_link));
	found = executable_by(table, 310, &by_id);
	CHECK(found && found->is_private);
	by_inode.inode = st.st_ino;
	by_inode.device_major = major(st.st_dev);
	by_inode.device_minor = minor(st.st_dev);
	found = executable_by(table, 311, &by_inode); /* it was that file */
	CHECK(found && !found->is_private);
	process_table_free(table);
}

static void test_fork_shares_until_exec(void)
{
	struct process_table *table = new_table();
	struct process_key parent = key_of(100, 0, 1), child = key_of(400, 20, 1);
	struct process_key execed = {child.tgid, 2, child.start_time_ns};
	const uint64_t address = 0x501340;
	struct located_frame frame;
	struct process_table_counters counters;

	fake_process(parent, 0x500000, true);
	process_table_locate(table, &parent, at(10), &address, 1, true, &frame);
	process_table_fork(table, 400, 100, at(20));
	CHECK_NUMBER(process_table_locate(table, &child, at(21), &address, 1, true, &frame), 1);
	check_golden_frame(&frame, 0x2340);
	CHECK_TEXT(process_table_info(table, &child, at(21))->service, "web"); /* its parent's */
	process_table_exec(table, 400, at(30));
	CHECK_NUMBER(process_table_locate(table, &execed, at(31), &address, 1, true, &frame), 0);
	process_table_counters(table, &counters);
	CHECK_NUMBER(counters.maps_read, 1);

	/* a child of a parent that nothing was known of yet: its parent's maps, read once */
	process_table_free(table);
	table = new_table();
	process_table_fork(table, 400, 100, at(20));
	CHECK_NUMBER(process_table_locate(table, &child, at(21), &address, 1, true, &frame), 1);
	check_golden_frame(&frame, 0x2340);
	remove_process(100);
	process_table_free(table);
}

/* A copy's samples are read when /proc has what it has executed since, of which the event is yet to
 * come: they are not of that. */
static void test_fork_with_next_program(void)
{
	struct process_key parent = key_of(100, 0, 1), child = key_of(400, 20, 1);
	struct process_key untold = {child.tgid, 2, child.start_time_ns};
	const uint64_t address = 0x501340;
	struct located_frame frame;

	fake_process(parent, 0x500000, true);
	fake_file("proc/100/cmdline", "sh");
	fake_process(child, 0x500000, true);
	fake_file("proc/400/cmdline", "next");
	fake_link("proc/400/exe", "/bin/next");
	for (unsigned is_sampled = 0; is_sampled < 2; is_sampled++) {
		struct process_table *table = new_table();
		const struct process_info *info;

		if (is_sampled)
			process_table_locate(table, &parent, at(10), &address, 1, true, &frame);
		process_table_fork(table, 400, 100, at(20));
		info = process_table_info(table, &child, at(21));
		CHECK_TEXT(info->executable_path, golden);
		CHECK_TEXT(info->lifetime->command, "sh");
		process_table_exec(table, 400, at(22));
		info = process_table_info(table, &untold, at(23));
		CHECK_TEXT(info->executable_path, "/bin/next");
		CHECK_TEXT(info->lifetime->command, "next");
		process_table_free(table);
	}

	/* that it was told of is not told: it is what /proc has */
	struct process_table *table = new_table();

	process_table_locate(table, &parent, at(10), &address, 1, true, &frame);
	process_table_fork(table, 400, 100, at(20));
	CHECK_TEXT(process_table_info(table, &untold, at(23))->lifetime->command, "next");
	process_table_free(table);
	fake_remove("proc/100/cmdline");
	fake_remove("proc/400/cmdline");
	remove_process(100);
	remove_process(400);
}

/* A sample of an execve() that waits for a disk: its arguments come later, and with them its name.
 */
static void test_program_that_starts(void)
{
	struct process_table *table = new_table();
	struct process_key key = key_of(100, 0, 2);
	const struct process_info *info;

	fake_process(key, 0x500000, true);
	fake_file("proc/100/comm", "worker-of-a-lon\n");
	process_table_exec(table, 100, at(10));
	CHECK_TEXT(process_table_info(table, &key, at(11))->lifetime->command, "[worker-of-a-lon]");
	fake_bytes("proc/100/cmdline", "/x/worker-of-a-long-name\0-v", 28);
	CHECK_TEXT(process_table_info(table, &key, at(60))->lifetime->command, "[worker-of-a-lon]");
	info = process_table_info(table, &key, at(112));
	CHECK_TEXT(info->lifetime->command, "/x/worker-of-a-long-name -v");
	CHECK_TEXT(info->name, "worker-of-a-long-name");
	fake_bytes("proc/100/cmdline", "", 0); /* what is known stays */
	CHECK_TEXT(process_table_info(table, &key, at(900))->lifetime->command,
		   "/x/worker-of-a-long-name -v");
	process_table_free(table);

	/* without arguments it is asked some times, and keeps what it had when it ends */
	table = new_table();
	process_table_exec(table, 100, at(10));
	CHECK_TEXT(process_table_info(table, &key, at(11))->lifetime->command, "[worker-of-a-lon]");
	fake_remove("proc/100/cmdline");
	fake_remove("proc/100/comm");
	remove_process(100);
	process_table_exit(table, 100, at(100));
	CHECK_TEXT(process_table_info(table, &key, at(150))->lifetime->command,
		   "[worker-of-a-lon]");
	process_table_free(table);
}

/* Samples may come after their program's end: they are located, but the kernel side is told nothing
 * that it would keep. */
static void test_ended_is_not_for_the_kernel(void)
{
	struct process_table *table = new_table();
	struct process_key key = key_of(100, 0, 1), execed = key_of(100, 0, 2);
	struct mapping_event event = golden_event(100, 0x500000, 31, true);
	const uint64_t address = 0x501340;
	struct process_mapping out[8];
	struct located_frame frame;
	uint32_t generation;

	fake_process(key, 0x500000, true);
	CHECK_NUMBER(process_table_mappings(table, &key, at(10), out, 8, &generation), 2);
	process_table_exec(table, 100, at(30));
	process_table_mapping(table, &event);
	CHECK_NUMBER(process_table_mappings(table, &execed, at(32), out, 8, &generation), 1);
	CHECK_NUMBER(process_table_mappings(table, &key, at(20), out, 8, &generation), 0);
	CHECK_NUMBER(generation, process_table_generation(table, &key, at(20)));
	CHECK(generation);
	process_table_exit(table, 100, at(40));
	CHECK_NUMBER(process_table_mappings(table, &execed, at(41), out, 8, &generation), 0);
	CHECK_NUMBER(process_table_locate(table, &execed, at(41), &address, 1, true, &frame), 1);
	check_golden_frame(&frame, 0x2340);
	remove_process(100);
	process_table_free(table);
}

static void test_jit_and_non_elf(void)
{
	struct process_table *table = new_table();
	struct process_key key = key_of(100, 0, 1);
	const uint64_t addresses[] = {0x10010, 0x20010};
	struct located_frame frames[2];
	char data[PATH_MAX];

	fake_file("files/image.dll", "MZ, a file whose code nobody but its runtime understands");
	fake_path(data, "files/image.dll");
	fake_process(key, 0x500000, true);
	fake_file("proc/100/maps",
		  "10000-11000 r-xp 00000000 00:01 5 /memfd:jit (deleted)\n"
		  "20000-21000 r-xp 00000000 08:01 6 %s\n",
		  data);
	fake_link("proc/100/map_files/10000-11000", "/memfd:jit (deleted)");
	fake_link("proc/100/map_files/20000-21000", data);
	CHECK_NUMBER(process_table_locate(table, &key, at(10), addresses, 1, true, frames), 1);
	CHECK(frames[0].place != PLACE_FILE);
	CHECK_NUMBER(process_table_locate(table, &key, at(10), addresses + 1, 1, true, frames), 1);
	CHECK_NUMBER(frames[0].place, PLACE_FILE);
	if (frames[0].place == PLACE_FILE) {
		CHECK_TEXT(frames[0].executable->name, "image.dll");
		CHECK_NUMBER(frames[0].address, 0x10);
		CHECK_NUMBER(frames[0].executable->gnu.length, 0);
		CHECK_NUMBER(frames[0].executable->htlhash.length, FILE_HASH_BYTES);
		CHECK_NUMBER(frames[0].executable->fd, -1);
	}
	remove_process(100);
	process_table_free(table);
}

static void on_end(void *context, struct process *process)
{
	(void)process;
	++*(unsigned *)context;
}

/* An end that no event tells of is found, and rooms hear of it. */
static void test_unseen_end(void)
{
	struct process_table *table = new_table();
	struct processes *processes = process_table_processes(table);
	struct process_key key = key_of(640, 0, 1);
	unsigned ends = 0;
	uint32_t room = processes_room(
		processes, &(struct process_room){.end = on_end, .context = &ends, .holds = true});
	struct process *process;

	fake_process(key, 0x500000, true);
	process_table_info(table, &key, at(1));
	process = processes_find(processes, &key);
	processes_hang(processes, process, room, &ends);
	process_table_sweep(table, at(70000));
	CHECK_NUMBER(ends, 0); /* it is there */
	remove_process(640);
	process_table_sweep(table, at(140000));
	CHECK(ends == 1 && process->ended_ns);
	process_table_sweep(table, at(280000));
	CHECK_NUMBER(ends, 1);
	processes_hang(processes, process, room, NULL);
	process_table_sweep(table, at(290000));
	CHECK(!processes_find(processes, &key));
	process_table_free(table);
}

/* File i of those that differ in their build-id: where a process that begins with it has it. */
static void meet_file(struct process_table *table, uint32_t i, struct located_frame *frame)
{
	static uint8_t bytes[4096];
	FILE *file = fopen(golden, "rb");
	size_t length = fread(bytes, 1, sizeof bytes, file);
	struct process_key key = key_of(500 + i, i * 90000, 2);
	struct mapping_event event = golden_event(500 + i, 0x500000, i * 90000, true);
	const uint64_t address = 0x501340;
	char name[64], path[PATH_MAX];

	fclose(file);
	bytes[0x170 + 16] = event.build_id.bytes[0] = (uint8_t)i; /* the note's first byte */
	snprintf(name, sizeof name, "files/program%u", i);
	fake_bytes(name, bytes, length);
	fake_path(path, name);
	event.path = path;
	process_table_exec(table, key.tgid, event.time_ns);
	process_table_mapping(table, &event);
	process_table_locate(table, &key, event.time_ns + 1, &address, 1, true, frame);
}

/* More files than entries: old ones are forgotten, indexes are never given twice. */
static void test_many_executables(void)
{
	const struct process_table_limits limits = {.executables = 4};
	struct process_table *table = process_table_new(&limits, fake_proc, NULL);
	uint64_t forgotten = 0; /* a bit each */
	uint32_t last = 0;
	int wrong = 0;

	for (uint32_t i = 0; i < 40; i++) {
		struct located_frame frame;
		char name[64];

		snprintf(name, sizeof name, "program%u", i);
		meet_file(table, i, &frame);
		if (frame.place != PLACE_FILE || frame.executable->index <= last) {
			wrong++;
			continue;
		}
		last = frame.executable->index;
		wrong += strcmp(frame.executable->name, name) != 0;
	}
	CHECK_NUMBER(wrong, 0);
	CHECK_NUMBER(last, 40);
	CHECK(!process_table_executable(table, 1) && process_table_executable(table, 40));
	for (uint32_t index; (index = process_table_take_forgotten(table));)
		forgotten += index <= 36 ? UINT64_C(1) << index : UINT64_C(1) << 63;
	CHECK_NUMBER(forgotten, (UINT64_C(1) << 37) - 2);
	process_table_free(table);
}

/* More files than numbers: none is given twice, since the kernel side has cached by them; that it
 * is so is counted, and what has one goes on. */
static void test_numbers_end(void)
{
	enum { NUMBERS = 3, FILES = 6 };
	const struct process_table_limits limits = {.executables = 2, .numbers = NUMBERS};
	struct process_table *table = process_table_new(&limits, fake_proc, NULL);
	struct process_table_counters counters;
	struct located_frame frame;
	const uint32_t last = EXECUTABLE_ANONYMOUS - 1;
	int wrong = 0;

	CHECK(last > 1 << 20); /* of as many as 32 bits have */
	for (uint32_t i = 0; i < FILES; i++) {
		meet_file(table, i, &frame);
		wrong += i < NUMBERS ? frame.place != PLACE_FILE || frame.executable->index != i + 1
				     : frame.place != PLACE_UNKNOWN;
	}
	CHECK_NUMBER(wrong, 0);
	process_table_counters(table, &counters);
	CHECK(counters.files_unnumbered >= FILES - NUMBERS && counters.lost_limit >= 3);
	CHECK(process_table_executable(table, NUMBERS) != NULL);
	CHECK(!process_table_executable(table, NUMBERS)->is_announced);
	process_table_announced(table, NUMBERS);
	CHECK(process_table_executable(table, NUMBERS)->is_announced);
	meet_file(table, NUMBERS - 1, &frame); /* again, in another process */
	CHECK(frame.place == PLACE_FILE && frame.executable->index == NUMBERS);
	process_table_free(table);
}

int main(void)
{
	golden_begin();
	test_known_process(true);
	test_known_process(false);
	test_back_off();
	test_other_process_of_the_same_pid();
	test_short_programs(true);
	test_short_programs(false);
	test_first_sample_without_frames();
	test_what_runs_is_read_again();
	test_replaced_file_is_not_taken();
	test_private_file_is_not_sent();
	test_fork_shares_until_exec();
	test_fork_with_next_program();
	test_program_that_starts();
	test_ended_is_not_for_the_kernel();
	test_jit_and_non_elf();
	test_unseen_end();
	test_many_executables();
	test_numbers_end();
	fake_clean();
	return checks_done();
}

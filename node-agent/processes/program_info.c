/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/program_info.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/hash_table.h"
#include "node-agent/kernel/stranger_reader.h"
#include "node-agent/processes/container.h"
#include "node-agent/processes/memory_map.h"
#include "node-agent/processes/process_files.h"
#include "node-agent/processes/program_name.h"
#include "node-agent/processes/user_names.h"

enum {
	CGROUP_TEXT_MAX = 128 << 10,
	COMM_TEXT_MAX = 64 << 10, /* it is read by steps */
	COMM_ROOM = 16,
	ENVIRONMENT_READ = 32 << 10,
	ARGUMENTS_READ = 64 << 10, /* behind a long class path stands what Java runs */
	STARTED_ROOM = 32,
	ID_ROOM = 32,
	PARENT_ROOM = 12,
	EXACT_NS = 10000000, /* /proc tells when a process started in clock ticks */
};

#define NS_PER_S 1000000000ull

/* What is read of one, before it is kept. */
struct facts {
	struct process_info shown;
	struct process_lifetime lifetime;
	struct container container;
	bool is_starting;
	char path[PATH_MAX], command[COMMAND_LINE_ROOM], name[COMMAND_NAME_ROOM];
	char program[PROGRAM_NAME_ROOM];
	char service[CONTAINER_SERVICE_ROOM], user[USER_NAME_ROOM], started[STARTED_ROOM],
		id[ID_ROOM], parent[PARENT_ROOM];
};

struct program_info *program_info_share(struct program_info *info)
{
	if (info)
		info->references++;
	return info;
}

void program_info_free(struct program_info *info)
{
	if (info && !--info->references)
		free(info);
}

static size_t text_bytes(const struct facts *facts)
{
	const struct process_info *shown = &facts->shown;
	const struct process_lifetime *lifetime = &facts->lifetime;
	const char *texts[] = {
		shown->executable_path, shown->container_id, shown->service, shown->pod,
		shown->namespace_,      shown->name,         lifetime->id,   lifetime->command,
		lifetime->unit,         lifetime->cgroup,    lifetime->user, lifetime->parent,
		lifetime->started,      lifetime->program};
	size_t bytes = 0;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		bytes += strlen(texts[i]) + 1;
	return bytes;
}

static const char *keep(char **at, const char *text)
{
	const size_t size = strlen(text) + 1;
	char *kept = memcpy(*at, text, size);

	*at += size;
	return kept;
}

static struct program_info *new_info(const struct facts *facts)
{
	const struct process_info *shown = &facts->shown;
	const struct process_lifetime *lifetime = &facts->lifetime;
	struct program_info *info = malloc(sizeof(*info) + text_bytes(facts));
	char *at;

	if (!info)
		return NULL;
	at = info->text;
	info->references = 1;
	info->is_starting = facts->is_starting;
	info->lifetime = (struct process_lifetime){
		.id = keep(&at, lifetime->id),
		.command = keep(&at, lifetime->command),
		.program = keep(&at, lifetime->program),
		.unit = keep(&at, lifetime->unit),
		.cgroup = keep(&at, lifetime->cgroup),
		.user = keep(&at, lifetime->user),
		.parent = keep(&at, lifetime->parent),
		.started = keep(&at, lifetime->started),
	};
	info->shown = (struct process_info){
		.executable_path = keep(&at, shown->executable_path),
		.container_id = keep(&at, shown->container_id),
		.service = keep(&at, shown->service),
		.pod = keep(&at, shown->pod),
		.namespace_ = keep(&at, shown->namespace_),
		.name = keep(&at, shown->name),
		.lifetime = &info->lifetime,
	};
	return info;
}

/* False: the process is gone, or its cgroup file is not to be read. */
static bool read_container(int directory, struct container *container)
{
	struct buffer text;
	bool ok;

	buffer_init(&text, CGROUP_TEXT_MAX);
	ok = process_file_read(directory, "cgroup", &text, NULL) && text.length;
	if (ok)
		container_read((const char *)text.bytes, text.length, container);
	buffer_release(&text);
	return ok;
}

static void read_comm(int directory, char comm[COMM_ROOM])
{
	struct buffer text;

	comm[0] = '\0';
	buffer_init(&text, COMM_TEXT_MAX);
	if (process_file_read(directory, "comm", &text, NULL))
		snprintf(comm, COMM_ROOM, "%.*s", (int)text.length, (const char *)text.bytes);
	comm[strcspn(comm, "\n")] = '\0';
	buffer_release(&text);
}

/* A kernel thread has none: [comm], as ps(1) shows it. Returns the bytes of arguments. */
static size_t read_command(int directory, unsigned what, char arguments[ARGUMENTS_READ],
			   struct facts *facts)
{
	char comm[COMM_ROOM];
	size_t length, shown;

	facts->lifetime.command = facts->command;
	facts->shown.name = facts->name;
	if (what == COMMAND_LINES_OFF)
		return 0;
	read_comm(directory, comm);
	length = stranger_text_read(directory, "cmdline", arguments, ARGUMENTS_READ);
	shown = length < COMMAND_LINE_READ ? length : COMMAND_LINE_READ;
	facts->is_starting = !length;
	command_line_write(arguments, shown, what, facts->command);
	if (!*facts->command && *comm)
		snprintf(facts->command, sizeof facts->command, "[%s]", comm);
	command_line_name(arguments, shown, comm, facts->name);
	return length;
}

/* By those arguments that may leave the host; a kernel thread's is its name. */
static void name_program(int directory, unsigned what, const char *arguments, size_t length,
			 struct facts *facts)
{
	const char *path = facts->shown.executable_path, *slash = strrchr(path, '/');

	facts->lifetime.program = facts->program;
	if (!*path) {
		read_comm(directory, facts->program);
		return;
	}
	if (length == ARGUMENTS_READ) /* the last one may go on */
		while (length && arguments[length - 1])
			length--;
	if (what == COMMAND_LINES_NAME)
		length = strnlen(arguments, length);
	program_name_write(path, arguments, length, facts->program);
	if (!strcmp(facts->program, slash ? slash + 1 : path))
		facts->lifetime.program = "";
}

/* What the program is told to call itself; nothing else of its environment is kept. */
static void read_service(int directory, struct facts *facts)
{
	static char bytes[ENVIRONMENT_READ];
	size_t length = stranger_text_read(directory, "environ", bytes, sizeof bytes);

	if (environment_value(bytes, length, "OTEL_SERVICE_NAME", facts->service,
			      sizeof facts->service))
		facts->shown.service = facts->service;
	explicit_bzero(bytes, length);
}

static void read_facts(int directory, unsigned command_lines, struct facts *facts)
{
	static char arguments[ARGUMENTS_READ];
	size_t length;
	uint32_t parent;
	uid_t uid;

	if (read_container(directory, &facts->container)) {
		facts->shown.container_id = facts->container.id;
		facts->shown.service = facts->container.service;
		facts->shown.pod = facts->container.pod;
		facts->lifetime.unit = facts->container.unit;
		facts->lifetime.cgroup = facts->container.path;
	}
	if (process_user(directory, &uid)) {
		user_name_of(uid, facts->user);
		facts->lifetime.user = facts->user;
	}
	if (process_parent(directory, &parent) && parent) {
		snprintf(facts->parent, sizeof facts->parent, "%" PRIu32, parent);
		facts->lifetime.parent = facts->parent;
	}
	length = read_command(directory, command_lines, arguments, facts);
	if (command_lines != COMMAND_LINES_OFF)
		read_service(directory, facts);
	/* Last: if that is what is looked for, so was all before. */
	if (process_link_read(directory, "exe", facts->path, sizeof facts->path)) {
		memory_path_cut_deleted(facts->path);
		facts->shown.executable_path = facts->path;
	} else {
		facts->is_starting = false; /* a thread of the kernel */
	}
	name_program(directory, command_lines, arguments, length, facts);
	explicit_bzero(arguments, length);
}

static void inherit_facts(const struct program_info_source *source, struct facts *facts)
{
	facts->is_starting = false;
	facts->shown = (struct process_info){"", "", "", "", "", "", NULL};
	facts->lifetime = (struct process_lifetime){"", "", "", "", "", "", "", "", 0};
	if (source->inherited) {
		facts->shown = source->inherited->shown;
		facts->lifetime = source->inherited->lifetime;
		facts->lifetime.parent = ""; /* of a child that was forked it is another one */
	}
	if (source->is_execed)
		facts->lifetime.command = facts->lifetime.program = facts->shown.name = "";
	if (source->exec_path)
		facts->shown.executable_path = source->exec_path;
}

static bool is_of_next_program(const struct program_info_source *source, const struct facts *facts)
{
	const char *own = source->inherited ? source->inherited->shown.executable_path : "";

	return source->is_forked && *own && strcmp(own, facts->shown.executable_path) != 0;
}

/* --- its name --- */

/* The same number may run again on another boot, and on another host. */
static uint64_t boot_hash(void)
{
	static uint64_t hash;
	char id[64];
	FILE *file;

	if (hash)
		return hash;
	file = fopen("/proc/sys/kernel/random/boot_id", "re");
	hash = hash_bytes(id, file ? fread(id, 1, sizeof id, file) : 0, 0) | 1;
	if (file)
		fclose(file);
	return hash;
}

static void write_started(uint64_t start_time_ns, char out[STARTED_ROOM])
{
	const uint64_t at = clock_ns(CLOCK_REALTIME) - boot_time_ns() + start_time_ns;
	const time_t second = (time_t)(at / NS_PER_S);
	struct tm tm;
	size_t length;

	if (!start_time_ns || !gmtime_r(&second, &tm))
		return;
	length = strftime(out, STARTED_ROOM, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + length, STARTED_ROOM - length, ".%02uZ",
		 (unsigned)(at % NS_PER_S / EXACT_NS));
}

/* Of everything but the time on the wall, which clocks that are set change, and the parent, whose
 * end changes it. */
static void write_id(const struct process_key *key, struct facts *facts)
{
	const struct process_lifetime *of = &facts->lifetime;
	const char *texts[] = {
		of->command, of->unit, of->cgroup, of->user, facts->shown.executable_path,
		of->program};
	uint64_t hash = hash_word(hash_word(boot_hash(), key->tgid), key->start_time_ns / EXACT_NS);

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		hash = hash_bytes(texts[i], strlen(texts[i]), hash);
	snprintf(facts->id, sizeof facts->id, "%" PRIu32 ".%012" PRIx64, key->tgid, hash >> 16);
}

struct program_info *program_info_read(int directory, const struct program_info_source *source)
{
	struct facts facts = {.path = ""};

	inherit_facts(source, &facts);
	if (directory >= 0)
		read_facts(directory, source->command_lines, &facts);
	if (is_of_next_program(source, &facts))
		inherit_facts(source, &facts);
	write_started(source->key.start_time_ns, facts.started);
	facts.lifetime.started = facts.started;
	write_id(&source->key, &facts);
	facts.lifetime.id = facts.id;
	return new_info(&facts);
}

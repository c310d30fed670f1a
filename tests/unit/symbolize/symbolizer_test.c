/* SPDX-License-Identifier: Apache-2.0 */
/* Modules on their way: directories, uploads, a debuginfod-shaped server, restarts. With the real
 * store and real workers. */
#include "symbol-server/symbolize/symbolizer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/elf_image.h"
#include "common/file_hash.h"
#include "symbol-server/symbolize/symbol_table.h"
#include "symbol-server/symbolize/worker.h"
#include "tests/check.h"

static char folder[] = "/tmp/symbolizer-test-XXXXXX";
static char data[64], cache[96], plain_dir[96], url[64];

static struct arena arena;

struct server {
	struct symbols_store *store;
	struct symbolizer *symbolizer;
};

static bool shell(const char *command)
{
	char line[2048];

	snprintf(line, sizeof(line), "cd %s && { %s; }", folder, command);
	return system(line) == 0;
}

static struct server start(bool with_directory, const char *server_url)
{
	const char *directories[] = {plain_dir}, *urls[] = {server_url};
	struct symbolizer_options options = {
		.symbol_dirs = directories,
		.symbol_dir_count = with_directory,
		.debuginfod_urls = urls,
		.debuginfod_url_count = server_url != NULL,
		.cache_directory = cache,
		.memory_limit_bytes = 256 << 20,
		.workers = 2,
		.upload_limit_bytes = 8 << 20,
	};
	struct server server = {0};
	struct error err = {0};

	server.store = symbols_open(data, &err);
	if (server.store)
		server.symbolizer = symbolizer_start(&options, server.store, &err);
	if (!server.symbolizer) {
		printf("Bail out! %s\n", err.message);
		exit(1);
	}
	return server;
}

static void stop(struct server *server)
{
	symbolizer_stop(server->symbolizer);
	symbols_close(server->store);
}

static struct build_id id_of(const char *name)
{
	struct elf_image image = {0};
	struct build_id id = {0};
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY);
	if (elf_image_read(fd, &image, NULL) && image.gnu.length)
		id = image.gnu;
	else
		file_hash(fd, &id, NULL);
	close(fd);
	return id;
}

static struct module_row state_of(struct server *server, const struct build_id *id)
{
	struct module_row *rows, none = {.reason = "", .source = ""};
	struct error err = {0};
	size_t count;

	arena_clear(&arena); /* a row's texts live until the next one is asked for */
	if (symbolizer_modules(server->symbolizer, &arena, &rows, &count, &err))
		for (size_t i = 0; i < count; i++)
			if (build_id_equal(&rows[i].id, id))
				return rows[i];
	return none;
}

/* Waits until the module has that state and its conversions have ended; the state it has then. */
static enum module_state wait_for(struct server *server, const struct build_id *id,
				  enum module_state state, enum symbol_quality quality, int seconds)
{
	struct module_row row = state_of(server, id);

	for (int i = 0; i < seconds * 50; i++) {
		row = state_of(server, id);
		if (row.state == state && row.quality == quality)
			return row.state;
		usleep(20 * 1000);
	}
	printf("# state %d quality %d: %s\n", row.state, row.quality, row.reason);
	return row.state;
}

static const char *name_of_main(struct server *server, const struct build_id *id, const char *name)
{
	static char text[300];
	struct symbol_frame frames[SYMBOL_CHAIN_MAX];
	struct symbol_table *table = symbolizer_take_table(server->symbolizer, id, text,
							   sizeof(text));
	char command[400], line[64] = "";
	FILE *pipe;

	if (!table)
		return text;
	snprintf(command, sizeof(command), "cd %s && nm %s | sed -n 's/ T main//p'", folder, name);
	pipe = popen(command, "r");
	if (!fgets(line, sizeof(line), pipe))
		line[0] = '\0';
	pclose(pipe);
	if (!symbol_table_lookup(table, ADDRESS_ELF, strtoull(line, NULL, 16), frames))
		snprintf(text, sizeof(text), "nothing");
	else
		snprintf(text, sizeof(text), "%s %s:%u", frames[0].name,
			 *frames[0].file ? strrchr(frames[0].file, '/') + 1 : "", frames[0].line);
	symbol_table_release(table);
	return text;
}

static void directories(void)
{
	struct server server = start(true, NULL);
	struct build_id id = id_of("one"), late = id_of("late"), hashed = id_of("hashed");
	struct build_id unknown = {.length = 20, .bytes = {1}};
	char reason[200];

	CHECK(!symbolizer_take_table(server.symbolizer, &unknown, reason, sizeof(reason)));
	CHECK_TEXT(reason, "it has not been met in samples yet");
	symbolizer_want(server.symbolizer, &id, "one", true, 10);
	symbolizer_want(server.symbolizer, &hashed, "hashed", false, 10);
	symbolizer_want(server.symbolizer, &late, "late", true, 1);
	CHECK_NUMBER(wait_for(&server, &id, MODULE_ready, QUALITY_DWARF, 30), MODULE_ready);
	CHECK_TEXT(state_of(&server, &id).source, "directory");
	CHECK_TEXT(state_of(&server, &id).reason, "");
	CHECK_TEXT(name_of_main(&server, &id, "one"), "main one.c:2");
	CHECK_NUMBER(wait_for(&server, &hashed, MODULE_ready, QUALITY_DWARF, 30), MODULE_ready);
	CHECK_NUMBER(wait_for(&server, &late, MODULE_missing, QUALITY_NONE, 30), MODULE_missing);
	CHECK(symbolizer_wants_upload(server.symbolizer, &late));
	/* what an agent was just asked for is on its way, not missing */
	CHECK_NUMBER(state_of(&server, &late).state, MODULE_wanted);
	CHECK_TEXT(state_of(&server, &late).reason,
		   "an agent that has the file was asked to send it");
	CHECK(!symbolizer_wants_upload(server.symbolizer, &id));
	CHECK(!symbolizer_take_table(server.symbolizer, &late, reason, sizeof(reason)));
	CHECK_TEXT(reason, "no upload, symbol directory or debuginfod server has it");
	/* a new file is noticed without a restart */
	CHECK(shell("mkdir -p dir/deeper && cp late dir/deeper/"));
	CHECK_NUMBER(wait_for(&server, &late, MODULE_ready, QUALITY_DWARF, 90), MODULE_ready);
	/* not through a link that leads out */
	id = id_of("outside");
	symbolizer_want(server.symbolizer, &id, "outside", true, 1);
	CHECK_NUMBER(wait_for(&server, &id, MODULE_missing, QUALITY_NONE, 30), MODULE_missing);
	stop(&server);
}

static bool upload(struct server *server, const struct build_id *id, const char *name, bool *is_new,
		   struct error *err)
{
	struct symbol_upload *upload = symbolizer_upload(server->symbolizer, id, 0, err);
	char path[256];
	uint8_t bytes[10000];
	ssize_t length;
	int fd;

	*err = (struct error){0};
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY);
	while ((length = read(fd, bytes, sizeof(bytes))) > 0)
		if (!symbol_upload_write(upload, bytes, (size_t)length, err)) {
			symbol_upload_abort(upload);
			close(fd);
			return false;
		}
	close(fd);
	return symbol_upload_finish(upload, is_new, err);
}

static void uploads(void)
{
	struct server server = start(false, NULL);
	struct build_id id = id_of("two"), other = id_of("one"),
			kernel = {.length = 20, .bytes = {7}};
	struct error err = {0};
	bool is_new = false;

	CHECK(symbolizer_wants_upload(server.symbolizer, &id));
	CHECK(!upload(&server, &other, "two", &is_new, &err));
	CHECK_NUMBER(err.kind, ERROR_CONFLICT);
	CHECK(!upload(&server, &id, "one.c", &is_new, &err));
	CHECK_NUMBER(err.kind, ERROR_FORMAT);
	CHECK(!upload(&server, &id, "cut", &is_new, &err));
	CHECK_NUMBER(err.kind, ERROR_FORMAT);
	CHECK(!upload(&server, &id, "big", &is_new, &err));
	CHECK_NUMBER(err.kind, ERROR_LIMIT);
	/* the executable has names, the debug file lines: the best of each counts */
	CHECK(upload(&server, &id, "two.nodebug", &is_new, &err));
	CHECK(is_new);
	CHECK_NUMBER(wait_for(&server, &id, MODULE_symbols, QUALITY_SYMTAB, 30), MODULE_symbols);
	CHECK_TEXT(name_of_main(&server, &id, "two"), "main :0");
	CHECK(upload(&server, &id, "two.nodebug", &is_new, &err));
	CHECK(!is_new);
	CHECK(upload(&server, &id, "two.debug", &is_new, &err));
	CHECK(is_new);
	CHECK_NUMBER(wait_for(&server, &id, MODULE_ready, QUALITY_DWARF, 30), MODULE_ready);
	CHECK_TEXT(state_of(&server, &id).source, "upload");
	CHECK_TEXT(name_of_main(&server, &id, "two"), "main two.c:2");
	/* a stripped file does not replace it */
	CHECK(upload(&server, &id, "two.stripped", &is_new, &err));
	CHECK(!is_new);
	CHECK_TEXT(name_of_main(&server, &id, "two"), "main two.c:2");
	CHECK(upload(&server, &kernel, "kallsyms", &is_new, &err));
	CHECK_NUMBER(wait_for(&server, &kernel, MODULE_symbols, QUALITY_KALLSYMS, 30),
		     MODULE_symbols);
	CHECK(!symbolizer_wants_upload(server.symbolizer, &kernel));
	stop(&server);
	/* everything is there after a restart, without a conversion */
	server = start(false, NULL);
	CHECK_TEXT(name_of_main(&server, &id, "two"), "main two.c:2");
	CHECK_NUMBER(state_of(&server, &id).state, MODULE_ready);
	stop(&server);
}

/* kill -9 in the middle of a conversion leaves such a row. */
static void interrupted(enum module_state state, const char *name)
{
	struct build_id id = id_of(name);
	struct module_row row = {
		.id = id, .name = name, .state = state, .reason = "", .source = ""};
	struct error err = {0};
	struct server server;
	struct symbols_store *store = symbols_open(data, &err);
	char command[256];

	CHECK(symbols_put_module(store, &row, &err));
	symbols_close(store);
	snprintf(
		command, sizeof(command),
		"mkdir -p data/cache/uploads && touch data/cache/uploads/receiving-9 && cp %s dir/",
		name);
	CHECK(shell(command));
	server = start(true, NULL);
	CHECK(shell("test ! -e data/cache/uploads/receiving-9"));
	CHECK_NUMBER(wait_for(&server, &id, MODULE_ready, QUALITY_DWARF, 30), MODULE_ready);
	stop(&server);
}

/* A server gets a file after it said that it has none: one need not wait for the next time. */
static void asked_again(struct server *server)
{
	struct build_id id = id_of("eight"), unknown = {.length = 20, .bytes = {7, 7}};
	char hex[BUILD_ID_HEX], line[512];
	struct error err = {0};

	symbolizer_want(server->symbolizer, &id, "eight", true, 1);
	CHECK_NUMBER(wait_for(server, &id, MODULE_missing, QUALITY_NONE, 60), MODULE_missing);
	build_id_format(&id, hex);
	snprintf(line, sizeof(line), "mkdir -p www/buildid/%s && cp eight www/buildid/%s/debuginfo",
		 hex, hex);
	CHECK(shell(line));
	CHECK(symbolizer_ask_again(server->symbolizer, &id, &err));
	CHECK(state_of(server, &id).is_working || state_of(server, &id).state == MODULE_ready);
	CHECK_NUMBER(wait_for(server, &id, MODULE_ready, QUALITY_DWARF, 60), MODULE_ready);
	CHECK(!symbolizer_ask_again(server->symbolizer, &unknown, &err));
	CHECK_TEXT(err.message, "nothing is known of this build-id");
}

static void stripped_until_debug_information_comes(void)
{
	struct server server;
	struct build_id id = id_of("four");
	struct error err = {0};
	bool is_new;

	/* from a server of files in debuginfod's paths */
	server = start(false, url);
	symbolizer_want(server.symbolizer, &id, "four", true, 1);
	CHECK_NUMBER(wait_for(&server, &id, MODULE_ready, QUALITY_DWARF, 60), MODULE_ready);
	CHECK_TEXT(state_of(&server, &id).source, url);
	CHECK_TEXT(name_of_main(&server, &id, "four"), "main four.c:2");
	CHECK(shell("test -z \"$(find data/cache -name 'download*' -o -name debuginfo)\""));
	/* it has another build's file under this id: as good as none, and not for ever */
	id = id_of("five");
	symbolizer_want(server.symbolizer, &id, "five", true, 1);
	CHECK_NUMBER(wait_for(&server, &id, MODULE_missing, QUALITY_NONE, 60), MODULE_missing);
	CHECK(state_of(&server, &id).retry_at_ms > 0);
	CHECK(symbolizer_wants_upload(server.symbolizer, &id));
	CHECK(upload(&server, &id, "five", &is_new, &err));
	CHECK_NUMBER(wait_for(&server, &id, MODULE_ready, QUALITY_DWARF, 60), MODULE_ready);
	asked_again(&server);
	/* ids that are no build-ids are never asked for */
	id = (struct build_id){.length = 16, .bytes = {5}};
	symbolizer_want(server.symbolizer, &id, "go", false, 1);
	CHECK_NUMBER(wait_for(&server, &id, MODULE_missing, QUALITY_NONE, 30), MODULE_missing);
	CHECK(shell("! grep -q 05000000 http.log"));
	stop(&server);
}

/* A server that is down says nothing about a build-id. */
static void source_down(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	struct build_id id = {.length = 20, .bytes = {9, 9}};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct server server;
	char down[64];

	/* bound, not listening: connections are refused */
	CHECK(!bind(fd, (struct sockaddr *)&address, sizeof(address)) &&
	      !getsockname(fd, (struct sockaddr *)&address, &length));
	snprintf(down, sizeof(down), "http://127.0.0.1:%u", ntohs(address.sin_port));
	server = start(false, down);
	symbolizer_want(server.symbolizer, &id, "x", true, 1);
	for (int i = 0; i < 500 && !state_of(&server, &id).retry_at_ms; i++)
		usleep(20 * 1000);
	CHECK_NUMBER(state_of(&server, &id).state, MODULE_wanted);
	CHECK(strstr(state_of(&server, &id).reason, down));
	printf("# %s\n", state_of(&server, &id).reason);
	stop(&server);
	close(fd);
}

static struct symbolizer_counters counters_of(const struct server *server)
{
	struct symbolizer_counters counters;

	symbolizer_counters(server->symbolizer, &counters);
	return counters;
}

/* Changes a stored row, as an older version of this program would have left it. */
static void age_row(const struct build_id *id, uint32_t converter)
{
	struct error err = {0};
	struct symbols_store *store = symbols_open(data, &err);
	struct module_row row;

	arena_clear(&arena);
	CHECK(symbols_module(store, id, &arena, &row, &err));
	row.converter = converter;
	CHECK(symbols_put_module(store, &row, &err));
	symbols_close(store);
}

/* What could not be converted is left alone until another file or another converter comes. */
static void malformed_stays_malformed(void)
{
	struct build_id id = id_of("seven"), fresh = {.length = 20, .bytes = {1, 2, 3}};
	struct server server = start(false, NULL);
	struct error err = {0};
	char reason[200];
	bool is_new;

	CHECK(upload(&server, &id, "seven.stripped", &is_new, &err));
	CHECK_NUMBER(wait_for(&server, &id, MODULE_failed, QUALITY_NONE, 30), MODULE_failed);
	snprintf(reason, sizeof(reason), "%s", state_of(&server, &id).reason);
	printf("# %s\n", reason);
	CHECK(strlen(reason) > 10);
	stop(&server);
	for (int old = 0; old < 2; old++) {
		if (old)
			age_row(&id, SYMBOL_CONVERTER_VERSION - 1);
		server = start(false, NULL);
		symbolizer_want(server.symbolizer, &id, "seven", true, 1);
		/* one behind it in the queue has had its turn: so had this one */
		symbolizer_want(server.symbolizer, &fresh, "none", true, 0);
		wait_for(&server, &fresh, MODULE_missing, QUALITY_NONE, 30);
		CHECK_NUMBER(wait_for(&server, &id, MODULE_failed, QUALITY_NONE, 30),
			     MODULE_failed);
		CHECK_TEXT(state_of(&server, &id).reason, reason);
		CHECK_NUMBER(counters_of(&server).conversions_failed, old);
		stop(&server);
		fresh.bytes[0]++;
	}
	server = start(false, NULL);
	CHECK(upload(&server, &id, "seven", &is_new, &err));
	CHECK_NUMBER(wait_for(&server, &id, MODULE_ready, QUALITY_DWARF, 30), MODULE_ready);
	stop(&server);
}

static uint32_t converter_of(const struct build_id *id)
{
	struct error err = {0};
	struct symbols_store *store = symbols_open(data, &err);
	struct module_row row = {0};

	arena_clear(&arena);
	CHECK(symbols_module(store, id, &arena, &row, &err));
	symbols_close(store);
	return row.converter;
}

/* A table that an older converter made is used until the newer one has made it anew. */
static void older_table_is_made_anew(void)
{
	struct build_id id = id_of("seven");
	struct server server;

	age_row(&id, SYMBOL_CONVERTER_VERSION - 1);
	server = start(false, NULL);
	CHECK_NUMBER(state_of(&server, &id).state, MODULE_ready);
	CHECK_TEXT(name_of_main(&server, &id, "seven"), "main seven.c:2");
	for (int i = 0; i < 1500 && !counters_of(&server).conversions; i++)
		usleep(20 * 1000);
	CHECK_NUMBER(wait_for(&server, &id, MODULE_ready, QUALITY_DWARF, 30), MODULE_ready);
	CHECK_TEXT(name_of_main(&server, &id, "seven"), "main seven.c:2");
	stop(&server);
	server = start(false, NULL); /* and not once more */
	CHECK_TEXT(name_of_main(&server, &id, "seven"), "main seven.c:2");
	stop(&server);
	CHECK_NUMBER(converter_of(&id), SYMBOL_CONVERTER_VERSION);
}

/* What was met and had no turn yet is known after SIGKILL too: rows are written within seconds. */
static void queue_is_stored(void)
{
	struct build_id id = {.length = 20, .bytes = {42}};
	struct server server = start(false, NULL);
	struct error err = {0};
	struct module_row row;
	bool is_there = false;

	symbolizer_want(server.symbolizer, &id, "queued", true, 7);
	for (int i = 0; i < 500 && !is_there; i++) {
		arena_clear(&arena);
		is_there = symbols_module(server.store, &id, &arena, &row, &err);
		usleep(20 * 1000);
	}
	CHECK(is_there);
	CHECK_TEXT(is_there ? row.name : "", "queued");
	stop(&server);
}

static void bad_options(void)
{
	const char *urls[] = {"file:///etc"};
	struct symbolizer_options options = {.debuginfod_urls = urls,
					     .debuginfod_url_count = 1,
					     .cache_directory = cache,
					     .upload_limit_bytes = 1};
	struct error err = {0};
	struct symbols_store *store = symbols_open(data, &err);

	CHECK(!symbolizer_start(&options, store, &err));
	CHECK_TEXT(err.message,
		   "debuginfod server 'file:///etc' is not an http:// or https:// URL");
	symbols_close(store);
}

static bool build_programs(void)
{
	return shell(
		"for n in one two three four five six seven eight late outside; do "
		"printf '#include <stdlib.h>\\nint main(void) { return rand() + %d; }\\n' $n "
		"2>/dev/null > $n.c; sed -i 's/ + [^;]*;/ + (int)sizeof(\"'$n'\");/' $n.c; "
		"cc -g -O1 -Wl,--build-id $n.c -o $n || exit 1; done; "
		"cc -g -O1 -Wl,--build-id=none one.c -o hashed && mkdir dir data data/cache && "
		"cp one hashed dir/ && ln -s ../outside dir/outside && "
		"mkdir -p dir/.build-id && ln -s / dir/.build-id/root && "
		"objcopy --only-keep-debug two two.debug && objcopy -g two two.nodebug && "
		"strip -s -o two.stripped two && strip -s -o seven.stripped seven && "
		"head -c 3000 two > cut && "
		"{ cat two; head -c 9000000 /dev/zero; } > big && "
		"printf 'farflame-kallsyms 1\\n0 T _text\\n10 t do_idle\\n' > kallsyms");
}

/* python's file server in debuginfod's path layout; "five" is served with another build-id's file.
 */
static pid_t serve(void)
{
	char hex[BUILD_ID_HEX], line[512], command[1024];
	struct build_id four = id_of("four"), five = id_of("five");
	FILE *pipe;
	int pid = 0, port = 0;

	build_id_format(&four, hex);
	snprintf(line, sizeof(line), "mkdir -p www/buildid/%s && cp four www/buildid/%s/debuginfo",
		 hex, hex);
	if (!shell(line))
		return 0;
	build_id_format(&five, hex);
	snprintf(line, sizeof(line), "mkdir -p www/buildid/%s && cp four www/buildid/%s/debuginfo",
		 hex, hex);
	if (!shell(line))
		return 0;
	snprintf(command, sizeof(command),
		 "cd %s/www && python3 -u -c \"import http.server as h, os\n"
		 "s = h.ThreadingHTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler)\n"
		 "print(os.getpid(), s.server_port)\nos.close(1)\nos.dup2(2, "
		 "1)\ns.serve_forever()\" "
		 "2> ../http.log",
		 folder);
	pipe = popen(command, "r");
	if (pipe && fscanf(pipe, "%d %d", &pid, &port) == 2)
		snprintf(url, sizeof(url), "http://127.0.0.1:%d", port);
	return pid;
}

int main(int argc, char **argv)
{
	pid_t server;

	symbol_worker_main(argc, argv);
	arena_init(&arena, 16 << 20);
	if (!mkdtemp(folder))
		return 1;
	snprintf(data, sizeof(data), "%s/data", folder);
	snprintf(cache, sizeof(cache), "%s/data/cache", folder);
	snprintf(plain_dir, sizeof(plain_dir), "%s/dir", folder);
	if (!build_programs()) {
		SKIP("needs a C compiler and binutils");
		return checks_done();
	}
	directories();
	uploads();
	interrupted(MODULE_converting, "three");
	interrupted(MODULE_symbols, "six"); /* between the names and the lines */
	server = serve();
	if (server > 0)
		stripped_until_debug_information_comes();
	else
		SKIP("needs python3 to serve files");
	if (server > 0)
		kill(server, SIGTERM);
	source_down();
	malformed_stays_malformed();
	older_table_is_made_anew();
	queue_is_stored();
	bad_options();
	if (!shell("rm -r ../${PWD##*/}"))
		printf("# %s left\n", folder);
	arena_release(&arena);
	return checks_done();
}

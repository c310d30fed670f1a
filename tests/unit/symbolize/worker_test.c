/* SPDX-License-Identifier: Apache-2.0 */
/* The worker with good, bad and hostile files. Truth for lines and inlined functions:
 * llvm-symbolizer; the large comparison is tests/system/symbols_agree.sh. */
#include "symbol-server/symbolize/worker.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "symbol-server/symbolize/convert/debug_needs.h"
#include "symbol-server/symbolize/convert/debug_reader.h"
#include "symbol-server/symbolize/symbol_table.h"
#include "tests/check.h"

static char folder[] = "/tmp/worker-test-XXXXXX";

#if defined(__SANITIZE_ADDRESS__)
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "exitcode=77:detect_leaks=0";
}
#endif

static const char program[] =
	"#include <stdlib.h>\n"
	"static inline __attribute__((always_inline)) int innermost(int x)\n"
	"{ return rand() + x; }\n"
	"static inline __attribute__((always_inline)) int middle(int x)\n"
	"{\n"
	"	return innermost(x) * 3;\n"
	"}\n"
	"__attribute__((noinline)) int outer(int x)\n"
	"{\n"
	"	int y = middle(x);\n"
	"	return y + middle(y);\n"
	"}\n"
	"int main(int argc, char **argv) { (void)argv; return outer(argc) & 1; }\n";

static int open_in_folder(const char *name, int flags)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return open(path, flags | O_CLOEXEC, 0600);
}

static bool shell(const char *command)
{
	char line[1024];

	snprintf(line, sizeof(line), "cd %s && %s", folder, command);
	return system(line) == 0;
}

static struct symbol_table *convert(int fd, bool names_only, struct error *err)
{
	struct symbol_table *table;
	struct buffer packed;

	*err = (struct error){0};
	buffer_init(&packed, WORKER_TABLE_MAX);
	table = worker_convert(&fd, 1, names_only, -1, 1 << 28, &packed, err);
	buffer_release(&packed);
	return table;
}

/* ---- good files ---- */

/* llvm-symbolizer 19 has no names for stubs of the PLT; tests/system compares them with objdump. */
static bool is_stub(const struct symbol_table *table, uint32_t location)
{
	uint32_t node = table->location_rows[location].node;
	const char *name = node == SYMBOL_NONE ? "" : table->strings + table->nodes[node].name;
	size_t length = strlen(name);

	return length > 4 && !strcmp(name + length - 4, "@plt");
}

static unsigned compare_with_llvm(const struct symbol_table *table, const char *name)
{
	char command[512], line[1024];
	unsigned frames_at = 0, different = 0, addresses = 0, count = 0;
	struct symbol_frame frames[SYMBOL_CHAIN_MAX];
	FILE *list, *pipe;

	snprintf(line, sizeof(line), "%s/addresses", folder);
	list = fopen(line, "w");
	for (uint32_t i = 0; i + 1 < table->range_count; i++)
		if (table->locations[i] != SYMBOL_NONE && !is_stub(table, table->locations[i]))
			fprintf(list, "%#llx\n",
				(unsigned long long)(table->first + table->starts[i]));
	fclose(list);
	snprintf(
		command, sizeof(command),
		"cd %s && llvm-symbolizer-19 --obj=%s -f=linkage --no-demangle --output-style=LLVM "
		"--addresses < addresses",
		folder, name);
	pipe = popen(command, "r");
	while (fgets(line, sizeof(line), pipe)) {
		char *colon;

		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "0x", 2)) {
			count = symbol_table_lookup(table, ADDRESS_ELF, strtoull(line, NULL, 16),
						    frames);
			frames_at = 0;
			addresses++;
		} else if (!*line) {
			different += frames_at != 2 * count;
		} else if (frames_at++ % 2 == 0) {
			different += frames_at / 2 >= count ||
				     strcmp(frames[frames_at / 2].name, line) != 0;
		} else if ((colon = strrchr(line, ':')) != NULL) {
			*colon = '\0'; /* the column */
			colon = strrchr(line, ':');
			different += frames_at / 2 - 1 >= count ||
				     (unsigned)atoi(colon + 1) != frames[frames_at / 2 - 1].line;
		}
	}
	pclose(pipe);
	printf("# %s: %u addresses compared with llvm-symbolizer\n", name, addresses);
	return addresses < 5 ? 999 : different;
}

static void good_file(const char *flags, const char *name, bool has_llvm)
{
	struct symbol_table *table;
	struct error err;
	char command[256];
	int fd;

	snprintf(command, sizeof(command), "cc %s p.c -o %s", flags, name);
	if (!shell(command)) {
		SKIP("needs a C compiler");
		return;
	}
	fd = open_in_folder(name, O_RDONLY);
	table = convert(fd, false, &err);
	CHECK_TEXT(err.message, "");
	CHECK(table);
	if (table && has_llvm && table->quality == QUALITY_DWARF)
		CHECK_NUMBER(compare_with_llvm(table, name), 0);
	symbol_table_release(table);
	close(fd);
}

static void qualities(void)
{
	struct symbol_table *table;
	struct error err;
	int fds[2] = {open_in_folder("all", O_RDONLY), -1};
	struct buffer packed;

	if (fds[0] < 0)
		return;
	table = convert(fds[0], true, &err);
	CHECK(table && table->quality == QUALITY_SYMTAB);
	symbol_table_release(table);
	/* the executable has the symbols, the debug file the DWARF */
	CHECK(shell("objcopy --only-keep-debug --strip-symbol=outer all debug && "
		    "objcopy -g all nodebug && strip -s -o stripped all"));
	close(fds[0]);
	fds[0] = open_in_folder("debug", O_RDONLY);
	fds[1] = open_in_folder("nodebug", O_RDONLY);
	buffer_init(&packed, WORKER_TABLE_MAX);
	table = worker_convert(fds, 2, false, -1, 1 << 28, &packed, &err);
	CHECK(table && table->quality == QUALITY_DWARF);
	symbol_table_release(table);
	buffer_release(&packed);
	close(fds[0]);
	close(fds[1]);
	fds[0] = open_in_folder("stripped", O_RDONLY);
	table = convert(fds[0], false, &err);
	CHECK(!table);
	CHECK_TEXT(err.message, "it is stripped: no debug information, no names of functions");
	close(fds[0]);
}

/* ---- what a file needs besides itself ---- */

static bool needs_of(const char *name, struct debug_needs *needs, char **text, struct error *err)
{
	int fd = open_in_folder(name, O_RDONLY);
	struct buffer out;
	bool ok;

	*err = (struct error){0};
	buffer_init(&out, DEBUG_NEEDS_TEXT_MAX);
	ok = worker_needs(fd, -1, &out, err);
	buffer_append_char(&out, '\0');
	*text = strdup((const char *)out.bytes);
	buffer_release(&out);
	close(fd);
	return ok && debug_needs_parse(*text, needs);
}

static void needs(void)
{
	static struct debug_needs needs;
	char text_of_a_split[PATH_MAX], *text;
	struct error err;

	CHECK(needs_of("all", &needs, &text, &err));
	CHECK_NUMBER(needs.alt.length, 0);
	CHECK_NUMBER(needs.path_count, 0);
	free(text);
	for (int version = 4; version <= 5; version++) {
		char command[300];

		snprintf(command, sizeof(command),
			 "gcc -gdwarf-%d -gsplit-dwarf -O1 -c p.c -o split.o && "
			 "gcc -gdwarf-%d split.o -o split",
			 version, version);
		if (!shell(command)) {
			SKIP("needs a gcc with -gsplit-dwarf");
			continue;
		}
		CHECK(needs_of("split", &needs, &text, &err));
		snprintf(text_of_a_split, sizeof(text_of_a_split), "%s/split.dwo", folder);
		CHECK_NUMBER(needs.path_count, 1);
		CHECK_TEXT(needs.path_count ? needs.paths[0] : "", text_of_a_split);
		free(text);
	}
	if (shell("cp all one && cp all two && dwz -m both.dwz one two 2> /dev/null && "
		  "readelf -n both.dwz | sed -n 's/.*Build ID: //p' > both.id")) {
		char hex[BUILD_ID_HEX] = "", line[BUILD_ID_HEX] = "";
		int fd = open_in_folder("both.id", O_RDONLY);
		ssize_t length = read(fd, line, sizeof(line) - 1);

		CHECK(needs_of("one", &needs, &text, &err));
		line[length > 0 ? length - 1 : 0] = '\0';
		CHECK_TEXT(needs.alt.length ? build_id_format(&needs.alt, hex) : "none", line);
		close(fd);
		free(text);
	} else {
		SKIP("needs dwz");
	}
	CHECK(!needs_of("p.c", &needs, &text, &err));
	CHECK_NUMBER(err.kind, ERROR_FORMAT);
	free(text);
}

/* What a hostile file made a worker write. */
static void bad_needs(void)
{
	static const char *const bad[] = {"alt", "alt xyz\n", "dwo \n", "dwo a", "what\n", "\n"};
	static struct debug_needs needs;
	char text[64], *many = malloc((DEBUG_NEEDS_PATHS + 1) * 6 + 1);

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		snprintf(text, sizeof(text), "%s", bad[i]);
		CHECK(!debug_needs_parse(text, &needs));
	}
	snprintf(text, sizeof(text), "alt 0011223344\ndwo a b\nmore\n");
	CHECK(debug_needs_parse(text, &needs));
	CHECK(needs.has_more && needs.path_count == 1 && needs.alt.length == 5);
	CHECK_TEXT(needs.paths[0], "a b");
	for (size_t i = 0; i <= DEBUG_NEEDS_PATHS; i++)
		memcpy(many + i * 6, "dwo a\n", 7);
	CHECK(!debug_needs_parse(many, &needs));
	free(many);
}

/* ---- bad files ---- */

static void bad_file(const void *bytes, size_t length, const char *want)
{
	int fd = memfd_create("bad", MFD_CLOEXEC);
	struct error err;
	struct symbol_table *table;

	CHECK(write(fd, bytes, length) == (ssize_t)length);
	table = convert(fd, false, &err);
	CHECK(!table);
	CHECK_TEXT(err.message, want);
	symbol_table_release(table);
	close(fd);
}

static void stopped(void)
{
	int fd = open_in_folder("all", O_RDONLY), stop = eventfd(1, EFD_CLOEXEC);
	struct error err = {0};
	struct buffer packed;

	buffer_init(&packed, WORKER_TABLE_MAX);
	CHECK(!worker_convert(&fd, 1, false, stop, 1 << 28, &packed, &err));
	CHECK_NUMBER(err.kind, ERROR_BUSY);
	buffer_release(&packed);
	close(stop);
	close(fd);
}

/* An ELF file whose .debug_info is 1 GiB of zeros in 1 MB. */
static void bomb(void)
{
	enum { MEGABYTES = 1024 };
	static uint8_t zeros[1 << 20], out[64 << 10];
	Elf64_Chdr chunk = {.ch_type = ELFCOMPRESS_ZLIB,
			    .ch_size = (uint64_t)MEGABYTES << 20,
			    .ch_addralign = 1};
	static const char names[] = "\0.text\0.debug_info\0.debug_abbrev\0.shstrtab";
	Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			     .e_type = ET_DYN,
			     .e_machine = EM_X86_64,
			     .e_version = EV_CURRENT,
			     .e_ehsize = sizeof(Elf64_Ehdr),
			     .e_shentsize = sizeof(Elf64_Shdr),
			     .e_shnum = 5,
			     .e_shstrndx = 4};
	Elf64_Shdr sections[5] = {
		{0},
		{.sh_name = 1,
		 .sh_type = SHT_NOBITS,
		 .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		 .sh_addr = 0x1000,
		 .sh_size = 0x1000},
		{.sh_name = 7,
		 .sh_type = SHT_PROGBITS,
		 .sh_flags = SHF_COMPRESSED,
		 .sh_offset = sizeof(header),
		 .sh_addralign = 1},
		{.sh_name = 19, .sh_type = SHT_PROGBITS, .sh_offset = 0, .sh_size = 64},
		{.sh_name = 33, .sh_type = SHT_STRTAB, .sh_size = sizeof(names)},
	};
	z_stream stream = {0};
	int fd = memfd_create("bomb", MFD_CLOEXEC);
	struct symbol_table *table;
	struct error err;
	off_t at = sizeof(header) + sizeof(chunk);

#if defined(__SANITIZE_ADDRESS__)
	SKIP("the bomb needs the memory limit, which AddressSanitizer cannot have");
	close(fd);
	return;
#endif
	deflateInit(&stream, 1);
	for (int i = 0; i <= MEGABYTES; i++) {
		stream.next_in = zeros;
		stream.avail_in = i < MEGABYTES ? sizeof(zeros) : 0;
		do {
			stream.next_out = out;
			stream.avail_out = sizeof(out);
			deflate(&stream, i < MEGABYTES ? Z_NO_FLUSH : Z_FINISH);
			at += pwrite(fd, out, sizeof(out) - stream.avail_out, at);
		} while (!stream.avail_out);
	}
	deflateEnd(&stream);
	sections[2].sh_size = (uint64_t)at - sizeof(header);
	sections[4].sh_offset = (uint64_t)at;
	header.e_shoff = (uint64_t)at + sizeof(names);
	CHECK(pwrite(fd, names, sizeof(names), at) > 0 &&
	      pwrite(fd, sections, sizeof(sections), (off_t)header.e_shoff) > 0 &&
	      pwrite(fd, &chunk, sizeof(chunk), sizeof(header)) > 0 &&
	      pwrite(fd, &header, sizeof(header), 0) > 0);
	printf("# bomb of %lld KB\n", (long long)at >> 10);
	table = convert(fd, false, &err);
	CHECK(!table);
	printf("# %s\n", err.message);
	CHECK(strstr(err.message, "limit"));
	symbol_table_release(table);
	close(fd);
}

/* ---- mutations ---- */

/* In a forked child without exec: 0 converted, 1 refused, 2 out of memory or time, −1 crashed. */
static int convert_forked(const uint8_t *bytes, size_t length)
{
	struct rlimit cpu = {5, 6};
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct debug_input input = {malloc(length), length};
		struct error err = {0};
		struct buffer packed;
		bool ok;

		setrlimit(RLIMIT_CPU, &cpu);
#if !defined(__SANITIZE_ADDRESS__)
		struct rlimit memory = {1 << 30, 1 << 30};

		setrlimit(RLIMIT_AS, &memory);
#endif
		memcpy(input.bytes, bytes, length);
		buffer_init(&packed, 64 << 20);
		ok = debug_reader_convert(&input, 1, false, &packed, &err);
		if (ok && !symbol_table_unpack(packed.bytes, packed.length, 1 << 28, &err))
			_exit(99); /* our own table is damaged */
		_exit(ok ? 10 : 11);
	}
	if (waitpid(pid, &status, 0) != pid)
		return -1;
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGXCPU ? 2 : -1;
	return WEXITSTATUS(status) == 10   ? 0
	       : WEXITSTATUS(status) == 11 ? 1
	       : WEXITSTATUS(status) == 1  ? 2
					   : -1;
}

static void mutations(const char *name)
{
	enum { ROUNDS = 200 };
	int fd = open_in_folder(name, O_RDONLY);
	unsigned results[4] = {0};
	uint8_t *bytes, *copy;
	struct stat stat;

	if (fd < 0 || fstat(fd, &stat))
		return;
	bytes = malloc((size_t)stat.st_size);
	copy = malloc((size_t)stat.st_size);
	CHECK(read(fd, bytes, (size_t)stat.st_size) == stat.st_size);
	srand(11);
	for (int round = 0; round < ROUNDS; round++) {
		memcpy(copy, bytes, (size_t)stat.st_size);
		for (int i = 0; i < 1 + round % 40; i++)
			copy[(size_t)rand() % (size_t)stat.st_size] = (uint8_t)rand();
		results[1 + convert_forked(copy, (size_t)stat.st_size)]++;
	}
	printf("# %d mutations of %s: %u crashed, %u converted, %u refused, %u out of bounds\n",
	       ROUNDS, name, results[0], results[1], results[2], results[3]);
	CHECK_NUMBER(results[0], 0);
	CHECK(results[1] > 0);
	free(bytes);
	free(copy);
	close(fd);
}

int main(int argc, char **argv)
{
	bool has_llvm;
	int fd;

	symbol_worker_main(argc, argv);
	if (!mkdtemp(folder))
		return 1;
	fd = open_in_folder("p.c", O_WRONLY | O_CREAT);
	CHECK(write(fd, program, sizeof(program) - 1) == sizeof(program) - 1);
	close(fd);
	has_llvm = system("llvm-symbolizer-19 --version >/dev/null 2>&1") == 0;
	if (!has_llvm)
		SKIP("comparing lines needs llvm-symbolizer-19");
	good_file("-O2 -g", "all", has_llvm);
	good_file("-O2 -gdwarf-4", "dwarf4", has_llvm);
	good_file("-O0 -g -no-pie", "plain", has_llvm);
	good_file("-O2 -g -gz", "packed", has_llvm);
	good_file("-O2 -g0", "symbols", has_llvm);
	qualities();
	needs();
	bad_needs();
	bad_file("", 0, "the file is empty");
	bad_file("<html>not found</html>", 22, "it is not an ELF file");
	bad_file("\177ELF", 4, "it is not an ELF file");
	stopped();
	bomb();
	mutations("all");
	mutations("packed");
	if (!shell("rm -r ../${PWD##*/}"))
		printf("# %s left\n", folder);
	return checks_done();
}

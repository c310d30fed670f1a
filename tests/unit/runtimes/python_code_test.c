/* SPDX-License-Identifier: Apache-2.0 */
/* Code objects of stopped interpreters, those below ~/.pyenv/versions and /usr/bin/python3, as they
 * describe them themselves; and memory that is none. */
#include "node-agent/runtimes/python_code.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/runtime_frames.h"
#include "node-agent/kernel/stranger_reader.h"
#include "tests/check.h"
#include "tests/unit/runtimes/interpreters.h"

static uint8_t digit(char c)
{
	return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* The same text, as hexadecimal says it; "-": none. */
static bool is_hex_of(const char *hex, const void *bytes, size_t length)
{
	if (!strcmp(hex, "-"))
		return length == 0;
	if (strlen(hex) != 2 * length)
		return false;
	for (size_t i = 0; i < length; i++)
		if ((digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1])) != ((const uint8_t *)bytes)[i])
			return false;
	return true;
}

struct interpreter {
	pid_t pid;
	int directory, input;
	FILE *output;
	struct python_layout layout;
};

static bool interpreter_start(struct interpreter *one, const char *path)
{
	int in[2], out[2];
	char directory[40];

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		return false;
	one->pid = fork();
	if (one->pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execl(path, path, "tests/programs/python_codes.py", NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	snprintf(directory, sizeof directory, "/proc/%d", one->pid);
	one->directory = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	one->input = in[1];
	one->output = fdopen(out[0], "r");
	return true;
}

static void interpreter_stop(struct interpreter *one)
{
	kill(one->pid, SIGKILL);
	waitpid(one->pid, NULL, 0);
	fclose(one->output);
	close(one->input);
	close(one->directory);
}

/* By the version that it says it has, or by what stands at its _PyRuntime. */
static bool find_layout(struct interpreter *one)
{
	uint8_t bytes[PYTHON_DEBUG_OFFSETS_BYTES];
	char line[100];
	unsigned version;
	unsigned long runtime;

	if (!fgets(line, sizeof line, one->output) ||
	    sscanf(line, "%u %lu", &version, &runtime) != 2)
		return false;
	if (python_layout_find(version, &one->layout))
		return true;
	return runtime && stranger_memory_read(one->directory, runtime, bytes, sizeof bytes) &&
	       python_layout_decode(bytes, sizeof bytes, &one->layout);
}

static bool read_stranger(void *context, uint64_t address, void *to, size_t bytes)
{
	return stranger_memory_read(*(const int *)context, address, to, bytes);
}

static bool is_as_said(const struct interpreter *one, char *line)
{
	int directory = one->directory;
	const struct python_memory memory = {read_stranger, &directory};
	struct python_code *code, *other;
	char *word[11];
	int count = 0;

	for (char *rest = line; count < 11 && (word[count] = strsep(&rest, " \n"));)
		count++;
	if (count < 11)
		return false;
	const uint64_t address = strtoull(word[0], NULL, 10);
	const uint16_t cookie = runtime_cookie(
		(uint32_t)strtoul(word[1], NULL, 10), (uint32_t)strtoul(word[2], NULL, 10),
		(uint32_t)strtoul(word[3], NULL, 10), (uint32_t)strtoul(word[4], NULL, 10),
		runtime_texts(strtoull(word[8], NULL, 10), strtoull(word[9], NULL, 10),
			      strtoull(word[10], NULL, 10)));
	if (python_code_read(&memory, &one->layout, address, cookie, &code) != PYTHON_CODE_READ)
		return false;
	const size_t lines = !strcmp(word[7], "-") ? 0 : strlen(word[7]) / 2;
	const bool is_cut = lines > PYTHON_LINES_BYTES;
	if (is_cut)
		word[7][2 * PYTHON_LINES_BYTES] = '\0';
	const bool is_same = is_hex_of(word[5], code->name, strlen(code->name)) &&
			     is_hex_of(word[6], code->file, strlen(code->file)) &&
			     is_hex_of(word[7], code->lines, code->lines_bytes) &&
			     code->is_lines_cut == is_cut &&
			     code->first_line == strtoul(word[4], NULL, 10);
	free(code);
	return is_same && python_code_read(&memory, &one->layout, address, cookie ^ 1, &other) ==
				  PYTHON_CODE_GONE;
}

static void test_interpreter(const char *path)
{
	struct interpreter one = {0};
	unsigned objects = 0, wrong = 0;
	char *line = NULL, *all = NULL, what[400];
	size_t room = 0, size = 0;

	if (!CHECK(interpreter_start(&one, path)))
		return;
	const bool has_layout = find_layout(&one);
	/* All of it first: the interpreter waits for its input then, and is stopped. */
	FILE *said = open_memstream(&all, &size);
	while (getline(&line, &room, one.output) > 0 && strcmp(line, ".\n") != 0)
		fputs(line, said);
	fclose(said);
	kill(one.pid, SIGSTOP);
	for (char *rest = all, *next; has_layout && (next = strsep(&rest, "\n")) && *next;
	     objects++) {
		if (!is_as_said(&one, next) && wrong++ < 3)
			printf("# differs: %.100s\n", next);
	}
	interpreter_stop(&one);
	free(line);
	free(all);
	snprintf(what, sizeof what, "%s: names, files and tables of %u code objects", path,
		 objects);
	check_report(has_layout && objects > 1000 && wrong == 0, what, __FILE__, __LINE__);
}

/* --- made-up memory, at address BASE --- */

enum {
	BASE = 0x10000,
	OBJECT = 0,
	NAME = 0x200,
	FILE_NAME = 0x400,
	TABLE = 0x600,
	MEMORY = 0x1000
};

struct image {
	uint8_t bytes[MEMORY];
	unsigned reads, change_at; /* the read before which the name becomes another object */
};

static void put(struct image *image, size_t at, uint64_t value, size_t bytes)
{
	memcpy(image->bytes + at, &value, bytes);
}

static bool read_image(void *context, uint64_t address, void *to, size_t bytes)
{
	struct image *image = context;

	if (++image->reads == image->change_at)
		put(image, OBJECT + 112, BASE + FILE_NAME, 8);
	if (address < BASE || address > BASE + MEMORY || bytes > BASE + MEMORY - address)
		return false;
	memcpy(to, image->bytes + (address - BASE), bytes);
	return true;
}

/* A 3.9's: argcount 1, line 10. */
static void image_fill(struct image *image, const struct python_layout *layout)
{
	*image = (struct image){.reads = 0};
	put(image, OBJECT, 3, 8); /* references */
	put(image, OBJECT + layout->code_argcount, 1, 4);
	put(image, OBJECT + layout->code_firstline, 10, 4);
	put(image, OBJECT + layout->code_name, BASE + NAME, 8);
	put(image, OBJECT + layout->code_filename, BASE + FILE_NAME, 8);
	put(image, OBJECT + layout->code_lines, BASE + TABLE, 8);
	put(image, NAME + 16, 1, 8);
	put(image, NAME + 32, 1 << 2 | 1 << 5 | 1 << 6, 4);
	put(image, NAME + 48, 'f', 1);
	put(image, FILE_NAME + 16, 2, 8);
	put(image, FILE_NAME + 32, 2 << 2 | 1 << 5, 4);
	put(image, FILE_NAME + 72, 0x6587, 2);
	put(image, FILE_NAME + 74, 0xd800, 2);
	put(image, TABLE + 16, 2, 8);
	put(image, TABLE + 32, 4 | 3 << 8, 2);
}

static uint64_t pointer_at(const struct image *image, size_t at)
{
	uint64_t value;

	memcpy(&value, image->bytes + at, sizeof value);
	return value;
}

/* Of the one that is meant, where it says that its texts are. */
static uint16_t cookie_of(const struct image *image, const struct python_layout *layout,
			  uint32_t flags)
{
	return runtime_cookie(1, 0, flags, 10,
			      runtime_texts(pointer_at(image, OBJECT + layout->code_name),
					    pointer_at(image, OBJECT + layout->code_filename),
					    pointer_at(image, OBJECT + layout->code_lines)));
}

static enum python_code_state image_read_as(struct image *image, const struct python_layout *layout,
					    uint32_t flags, struct python_code **code)
{
	const struct python_memory memory = {read_image, image};

	return python_code_read(&memory, layout, BASE + OBJECT, cookie_of(image, layout, flags),
				code);
}

static enum python_code_state image_read(struct image *image, const struct python_layout *layout,
					 struct python_code **code)
{
	return image_read_as(image, layout, 0, code);
}

static void test_made_up(void)
{
	static const struct {
		const char *what;
		size_t at;
		uint64_t value;
		enum python_code_state state;
	} rows[] = {
		{"a name at no address", OBJECT + 112, 7, PYTHON_CODE_UNREAD},
		{"a name that is not compact", NAME + 32, 1 << 2, PYTHON_CODE_UNREAD},
		{"a name of no kind", NAME + 32, 3 << 2 | 1 << 5, PYTHON_CODE_UNREAD},
		{"ASCII of two bytes", NAME + 32, 2 << 2 | 1 << 5 | 1 << 6, PYTHON_CODE_UNREAD},
		{"a name longer than memory", NAME + 16, 1ULL << 62, PYTHON_CODE_READ},
		{"a negative length", FILE_NAME + 16, UINT64_MAX, PYTHON_CODE_UNREAD},
		{"a table longer than memory", TABLE + 16, UINT64_MAX, PYTHON_CODE_UNREAD},
		{"another object", OBJECT + 40, 11, PYTHON_CODE_GONE},
		{"one that is freed", OBJECT, 0, PYTHON_CODE_GONE},
		{"one that is in a list of free memory", OBJECT, 0x7f1234567890, PYTHON_CODE_GONE},
		{"one that is immortal", OBJECT, 0xffffffff, PYTHON_CODE_READ},
	};
	struct python_layout layout;
	struct python_code *code;
	struct image image;

	CHECK(python_layout_find(0x030912f0, &layout));
	image_fill(&image, &layout);
	CHECK_NUMBER(image_read(&image, &layout, &code), PYTHON_CODE_READ);
	CHECK_TEXT(code->name, "f");
	CHECK_TEXT(code->file, "文\xef\xbf\xbd");
	CHECK_NUMBER(python_code_line(code, 4), 13);
	CHECK_NUMBER(python_code_line(code, RUNTIME_POSITION_NONE), 10);
	CHECK(!code->is_interpreters);
	free(code);
	put(&image, OBJECT + layout.code_flags, 0x2000001, 4);
	CHECK_NUMBER(image_read_as(&image, &layout, 0x2000001, &code), PYTHON_CODE_READ);
	CHECK(code->is_interpreters);
	free(code);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		image_fill(&image, &layout);
		put(&image, rows[i].at, rows[i].value,
		    rows[i].at == OBJECT + 40 || (rows[i].at & 63) == 32 ? 4 : 8);
		check_report(image_read(&image, &layout, &code) == rows[i].state, rows[i].what,
			     __FILE__, __LINE__);
		free(code);
	}
	for (unsigned read = 2; read <= 5; read++) {
		image_fill(&image, &layout);
		image.change_at = read;
		CHECK_NUMBER(image_read(&image, &layout, &code), PYTHON_CODE_GONE);
		free(code);
	}
}

int main(void)
{
	test_interpreters(test_interpreter);
	test_made_up();
	return checks_done();
}

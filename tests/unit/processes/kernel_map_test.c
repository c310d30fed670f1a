/* SPDX-License-Identifier: Apache-2.0 */
/* A made-up kernel with a module; then, as root, the running one: its build-id read by Python. */
#include "node-agent/processes/kernel_map.h"

#include "common/buffer.h"
#include "node-agent/processes/kernel_modules.h"
#include "node-agent/processes/kernel_symbols.h"
#include "tests/check.h"
#include "tests/unit/processes/fake_proc.h"

static const uint8_t kernel_notes[] = {
	6, 0, 0, 0, 4, 0, 0, 0, 0, 1, 0, 0, 'L', 'i', 'n', 'u', 'x', 0, 0, 0, 0, 0, 6, 0,
	4, 0, 0, 0, 8, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0,   1,   2, 3, 4, 5, 6, 7, 8,
};
static const uint8_t module_note[] = {4, 0, 0,   0,   4,   0, 0,    0,    3,    0,
				      0, 0, 'G', 'N', 'U', 0, 0xaa, 0xbb, 0xcc, 0xdd};

static void fake_kernel(void)
{
	fake_bytes("sys/kernel/notes", kernel_notes, sizeof kernel_notes);
	fake_file("proc/kallsyms", "0000000000000000 A fixed_percpu_data\n"
				   "0000000000001000 A cpu_number\n"
				   "ffffffff91000000 T _text\n"
				   "ffffffff91000000 T _stext\n"
				   "ffffffff91000040 t do_one_initcall\n"
				   "ffffffff91000100 W weak_function\n"
				   "ffffffff91200000 T _etext\n"
				   "ffffffff91300000 D jiffies\n"
				   "ffffffff91400000 T init_function\n"
				   "ffffffffc0100020 t xfs_read\t[xfs]\n"
				   "ffffffffc0101000 t xfs_exit\t[xfs]\n"
				   "ffffffffc0100010 d xfs_data\t[xfs]\n"
				   "ffffffffc0200000 t bpf_prog_1\t[bpf]\n");
	fake_file("proc/modules", "xfs 8192 1 - Live 0xffffffffc0100000\n"
				  "hidden 4096 0 - Live 0x0000000000000000\n");
	fake_file("sys/module/xfs/sections/.text", "0xffffffffc0100000\n");
	fake_file("sys/module/xfs/sections/.exit.text", "0xffffffffc0101000\n");
	fake_file("sys/module/xfs/sections/.data", "0xffffffffc0300000\n");
	fake_bytes("sys/module/xfs/notes/.note.gnu.build-id", module_note, sizeof module_note);
}

static void test_fake_kernel(void)
{
	struct executables *executables = executables_new(16, NULL);
	struct kernel_map *map = kernel_map_new(fake_proc, executables, NULL);
	struct located_frame frame;
	char hex[BUILD_ID_HEX];

	kernel_map_locate(map, 0xffffffff91000044, &frame);
	CHECK_NUMBER(frame.place, PLACE_FILE);
	CHECK_NUMBER(frame.address, 0x44);
	CHECK_NUMBER(frame.executable->base, ADDRESS_KERNEL_TEXT);
	CHECK_NUMBER(frame.executable->limit, 0x200000);
	CHECK_NUMBER(frame.executable->fd, -1);
	CHECK_TEXT(frame.executable->name, "vmlinux");
	CHECK_TEXT(build_id_format(&frame.executable->gnu, hex), "0102030405060708");

	kernel_map_locate(map, 0xffffffffc0100024, &frame);
	CHECK_NUMBER(frame.place, PLACE_FILE);
	CHECK_NUMBER(frame.address, 0x24);
	CHECK_NUMBER(frame.executable->base, ADDRESS_MODULE_TEXT);
	CHECK_NUMBER(frame.executable->limit, 0x1000);
	CHECK_TEXT(frame.executable->name, "xfs.ko");
	CHECK_TEXT(build_id_format(&frame.executable->gnu, hex), "aabbccdd");

	kernel_map_locate(map, 0xffffffff91400000, &frame); /* init code */
	CHECK_NUMBER(frame.place, PLACE_ANONYMOUS);
	kernel_map_locate(map, 0xffffffffc0101000, &frame); /* the module, but not its .text */
	CHECK_NUMBER(frame.place, PLACE_ANONYMOUS);
	kernel_map_locate(map, 0xffffffffc0200010, &frame); /* a BPF program */
	CHECK_NUMBER(frame.place, PLACE_ANONYMOUS);
	kernel_map_free(map);
	executables_free(executables);
}

static void test_texts(void)
{
	struct buffer text;

	buffer_init(&text, 1 << 20);
	CHECK(kernel_symbols_text(fake_proc, &text, NULL));
	buffer_append_char(&text, '\0');
	CHECK_TEXT((const char *)text.bytes, "farflame-kallsyms 1\n"
					     "0 T _text\n"
					     "0 T _stext\n"
					     "40 t do_one_initcall\n"
					     "100 W weak_function\n"
					     "200000 T _etext\n");
	buffer_clear(&text);
	CHECK(kernel_module_symbols_text(fake_proc, "xfs", &text, NULL));
	buffer_append_char(&text, '\0');
	CHECK_TEXT((const char *)text.bytes, "farflame-kallsyms 1\n"
					     "module xfs\n"
					     "20 t xfs_read\n"
					     "1000 t xfs_exit\n");
	CHECK(!kernel_module_symbols_text(fake_proc, "../kernel", &text, NULL));
	CHECK(!kernel_module_symbols_text(fake_proc, "nothing", &text, NULL));
	buffer_release(&text);
	buffer_init(&text, 40);
	CHECK(!kernel_symbols_text(fake_proc, &text, NULL));
	buffer_release(&text);
}

static void test_hidden(void)
{
	struct executables *executables = executables_new(16, NULL);
	struct kernel_map *map = kernel_map_new(fake_proc, executables, NULL);
	struct located_frame frame;
	struct error err = {0};
	struct buffer text;

	fake_file("proc/kallsyms", "0000000000000000 T _text\n0000000000000000 T _etext\n");
	kernel_map_locate(map, 0xffffffff91000044, &frame);
	CHECK_NUMBER(frame.place, PLACE_UNKNOWN);
	buffer_init(&text, 1 << 20);
	CHECK(!kernel_symbols_text(fake_proc, &text, &err));
	CHECK_NUMBER(err.kind, ERROR_UNSUPPORTED);
	buffer_release(&text);
	kernel_map_free(map);
	executables_free(executables);
}

static void test_bad_lines(void)
{
	static const char *const bad[] = {
		"",          "\n",     "zz T a\n",       "1000 T\n",
		"1000 T \n", "1000\n", "1000 T a\t[x\n", "1000 T a\t[]\n"};
	struct kernel_symbol symbol;
	struct kernel_module module;
	char line[64];

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		snprintf(line, sizeof line, "%s", bad[i]);
		CHECK(!kernel_symbol_parse(line, &symbol));
	}
	CHECK(kernel_module_parse("a 16384 2 b,c, Live 0xffffffffc0000000 (OE)\n", &module));
	CHECK_NUMBER(module.end - module.base, 16384);
	CHECK(!kernel_module_parse("a 16384 2 b,c, Live\n", &module));
	CHECK(!kernel_module_parse("", &module));
}

/* vfs_read, a function every kernel has, where the running kernel's kallsyms puts it. */
static void test_running_kernel(void)
{
	struct executables *executables = executables_new(16, NULL);
	struct kernel_map *map = kernel_map_new("/proc", executables, NULL);
	char line[256], hex[BUILD_ID_HEX], theirs[BUILD_ID_HEX] = "";
	unsigned long long address, text = 0, function = 0;
	FILE *kallsyms = fopen("/proc/kallsyms", "r");
	FILE *python = popen("python3 -c \"import struct\n"
			     "b=open('/sys/kernel/notes','rb').read()\n"
			     "while b:\n"
			     " n,d,t=struct.unpack('III',b[:12]); e=12+(n+3)//4*4\n"
			     " if t==3 and b[12:16]==b'GNU\\\\0': print(b[e:e+d].hex())\n"
			     " b=b[e+(d+3)//4*4:]\" 2>/dev/null",
			     "r");
	struct located_frame frame;

	while (kallsyms && fgets(line, sizeof line, kallsyms)) {
		char name[128];

		if (sscanf(line, "%llx %*c %127s", &address, name) != 2)
			continue;
		text = strcmp(name, "_text") ? text : address;
		function = strcmp(name, "vfs_read") ? function : address;
	}
	if (kallsyms)
		fclose(kallsyms);
	if (python && !fgets(theirs, sizeof theirs, python))
		theirs[0] = '\0';
	if (python)
		pclose(python);
	theirs[strcspn(theirs, "\n")] = '\0';
	if (!text || !function || !theirs[0]) {
		SKIP("kernel addresses are hidden from this user, or python3 is not installed");
	} else {
		kernel_map_locate(map, function + 3, &frame);
		CHECK_NUMBER(frame.place, PLACE_FILE);
		CHECK_NUMBER(frame.address, function + 3 - text);
		CHECK_TEXT(build_id_format(&frame.executable->gnu, hex), theirs);
	}
	kernel_map_free(map);
	executables_free(executables);
}

int main(void)
{
	fake_make();
	fake_kernel();
	test_fake_kernel();
	test_texts();
	test_hidden();
	test_bad_lines();
	test_running_kernel();
	fake_clean();
	return checks_done();
}

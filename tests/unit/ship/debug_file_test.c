/* SPDX-License-Identifier: Apache-2.0 */
/* Truth: binutils make the split, readelf says what a file is. */
#include "tests/check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/elf_image.h"
#include "node-agent/ship/debug_file.h"
#include "tests/unit/shell.h"

static char directory[] = "/tmp/farflame_debug_XXXXXX";

static const char make[] =
	"set -e; cd '%s'; chmod 755 .; mkdir -p root bin\n"
	"echo 'int main(void) { return 0; }' > a.c\n"
	"cc -g -Wl,--build-id=sha1 -o whole a.c\n"
	"objcopy --only-keep-debug whole whole.debug\n"
	"objcopy --strip-debug whole bin/plain\n"
	"(cd bin && cp ../whole.debug linked.debug &&\n"
	" objcopy --add-gnu-debuglink=linked.debug plain linked && rm linked.debug)\n"
	"cc -g -DX -Wl,--build-id=0x00112233 -o other a.c\n";

static int open_in(const char *name)
{
	char path[256];

	snprintf(path, sizeof path, "%s/%s", directory, name);
	return open(path, O_RDONLY);
}

static ino_t inode_of(int fd)
{
	struct stat status = {0};

	return fstat(fd, &status) ? 0 : status.st_ino;
}

/* What is chosen for the running file: the inode of that name, or the running one for NULL. */
static uint32_t check_choice(const char *running, const char *want)
{
	char root[256];
	uint32_t refused = 0;
	struct elf_image image;
	int fd = open_in(running), expected = want ? open_in(want) : -1, found;

	snprintf(root, sizeof root, "%s/root", directory);
	CHECK(elf_image_read(fd, &image, NULL));
	found = debug_file_open(root, &image.gnu, fd, &refused);
	if (want)
		CHECK(found >= 0 && inode_of(found) == inode_of(expected));
	else
		CHECK(found < 0);
	if (found >= 0)
		close(found);
	if (expected >= 0)
		close(expected);
	close(fd);
	return refused;
}

/* Puts whole.debug (or another file) where the build-id tree has it. */
static bool put_in_tree(const char *what)
{
	char format[512];

	snprintf(format, sizeof format,
		 "cd '%%s'; id=$(readelf -n whole | sed -n 's/.*Build ID: //p'); "
		 "d=root/.build-id/$(echo $id | cut -c1-2); mkdir -p $d; "
		 "rm -f $d/*; %s $d/$(echo $id | cut -c3-).debug",
		 what);
	return shell(format, directory);
}

/* bin/linked has bin/linked.debug beside it: what a stranger may put there instead. */
static void check_strangers(void)
{
	CHECK(shell("cd '%s'; mkdir -m 700 closed; mv bin/linked.debug closed/secret.debug;"
		    "ln -s ../closed/secret.debug bin/linked.debug",
		    directory));
	CHECK_NUMBER(check_choice("bin/linked", NULL), 1);
	CHECK(shell("cd '%s'; rm bin/linked.debug; ln -s ../closed bin/.debug;"
		    "ln closed/secret.debug closed/linked.debug",
		    directory));
	CHECK_NUMBER(check_choice("bin/linked", NULL), 1);
	CHECK(shell("cd '%s'; rm bin/.debug; mkfifo bin/linked.debug", directory));
	CHECK_NUMBER(check_choice("bin/linked", NULL), 1);
	CHECK(shell("cd '%s'; rm bin/linked.debug; ln closed/secret.debug bin/linked.debug",
		    directory));
	if (geteuid() != 0) {
		SKIP("files of other users: needs root");
	} else {
		CHECK(shell("cd '%s'; chown 65534 bin bin/linked; chmod 600 bin/linked.debug",
			    directory));
		CHECK_NUMBER(check_choice("bin/linked", NULL), 1); /* root's, for root alone */
		CHECK(shell("cd '%s'; chown 65533 bin/linked.debug; chmod 644 bin/linked.debug",
			    directory));
		CHECK_NUMBER(check_choice("bin/linked", NULL), 1); /* a third user's */
		CHECK(shell("cd '%s'; chown 65534 bin/linked.debug; chmod 600 bin/linked.debug",
			    directory));
		CHECK_NUMBER(check_choice("bin/linked", "bin/linked.debug"), 0);
		CHECK(shell("cd '%s'; chmod 777 bin", directory)); /* who has put it there? */
		CHECK_NUMBER(check_choice("bin/linked", NULL), 1);
		CHECK(shell("cd '%s'; chown -R 0 bin; chmod 755 bin; chmod 644 bin/linked.debug",
			    directory));
	}
	check_choice("bin/linked", "bin/linked.debug");
}

int main(void)
{
	int fd;

	umask(022);
	if (!mkdtemp(directory) || !shell(make, directory)) {
		SKIP("cc and objcopy are needed");
		return checks_done();
	}
	check_choice("whole", NULL);
	check_choice("bin/plain", NULL);
	/* by the build-id tree */
	CHECK(put_in_tree("ln whole.debug"));
	check_choice("bin/plain", "whole.debug");
	CHECK(put_in_tree("cp other"));
	check_choice("bin/plain", NULL); /* another build-id */
	CHECK(put_in_tree("cp bin/plain"));
	check_choice("bin/plain", NULL); /* nothing better than itself */
	CHECK(put_in_tree("mkfifo"));
	CHECK_NUMBER(check_choice("bin/plain", NULL), 1); /* must not wait for a writer */
	CHECK(put_in_tree("ln -s $PWD/whole.debug"));     /* as distributions have it */
	CHECK_NUMBER(check_choice("bin/plain", "whole.debug"), 0);
	CHECK(shell("cd '%s'; chmod 666 whole.debug", directory));
	CHECK_NUMBER(check_choice("bin/plain", NULL), 1);
	CHECK(shell("cd '%s'; chmod 644 whole.debug", directory));
	CHECK(shell("cd '%s'; rm -r root/.build-id", directory));
	/* by the link: beside it, in .debug, under the root */
	CHECK(shell("cd '%s'/bin; cp ../other linked.debug", directory));
	check_choice("bin/linked", NULL);
	CHECK(shell("cd '%s'/bin; cp ../whole.debug linked.debug", directory));
	check_choice("bin/linked", "bin/linked.debug");
	check_strangers();
	CHECK(shell("cd '%s'/bin; mkdir .debug; mv linked.debug .debug", directory));
	check_choice("bin/linked", "bin/.debug/linked.debug");
	CHECK(shell("cd '%s'; mkdir -p root/$PWD/bin; ln whole.debug root/$PWD/bin/linked.debug; "
		    "rm -r bin/.debug",
		    directory));
	check_choice("bin/linked", "whole.debug");
	fd = open_in("a.c");
	CHECK(!debug_file_is_elf(fd));
	close(fd);
	fd = open_in("other");
	CHECK(debug_file_is_elf(fd));
	close(fd);
	CHECK(shell("rm -r '%s'", directory));
	return checks_done();
}

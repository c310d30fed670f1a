/* SPDX-License-Identifier: Apache-2.0 */
/* A file without a descriptor is found again by its path and by who maps it, and no other is. */
#include "node-agent/kernel/stranger_place.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "node-agent/kernel/stranger_file.h"
#include "tests/check.h"

static char path[] = "/tmp/farflame_place_XXXXXX";

static bool opens(const struct stranger_place *place)
{
	int fd = stranger_place_open(place);
	struct stat st;
	bool ok = fd >= 0 && stranger_file_stat(fd, &st) && st.st_ino == place->st.st_ino;

	if (fd >= 0)
		close(fd);
	return ok;
}

int main(void)
{
	struct stranger_place place = {.path = path};
	int fd = mkstemp(path);
	void *mapped;

	CHECK(fd >= 0 && !ftruncate(fd, 4096) && stranger_file_stat(fd, &place.st));
	mapped = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(mapped != MAP_FAILED);
	CHECK(opens(&place));
	place.tgid = (uint32_t)getpid();
	place.start = place.end = 4096; /* nothing is mapped there: by its path */
	CHECK(opens(&place));
	CHECK(!unlink(path) && !opens(&place));
	place.start = (uint64_t)(uintptr_t)mapped;
	place.end = place.start + 4096;
	if (geteuid())
		SKIP("map_files: needs root");
	else
		CHECK(opens(&place));
	CHECK(!ftruncate(fd, 4097)); /* another content */
	CHECK(!opens(&place));
	close(fd);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600); /* another file of that path */
	place.tgid = 0;
	CHECK(fd >= 0 && !ftruncate(fd, 4096) && !opens(&place));
	unlink(path);
	return checks_done();
}

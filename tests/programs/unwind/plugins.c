/* SPDX-License-Identifier: Apache-2.0 */
/* plugins SECONDS LIBRARY LIBRARY: dlopen() and dlclose() all the time, bound lazily, so that code
 * comes and goes at the same addresses and the dynamic linker's own work is seen. With -DPLT_ONLY
 * it keeps both and calls through the PLT. */
#include <dlfcn.h>

#include "tests/programs/unwind/until.h"

extern uint64_t plugin_back(uint64_t x);

NOINLINE uint64_t plugin_back(uint64_t x)
{
#ifdef PLT_ONLY
	return x + 1;
#else
	return work(x, 300);
#endif
}

static NOINLINE uint64_t call(void *library, uint64_t x)
{
	uint64_t (*run)(uint64_t) = (uint64_t(*)(uint64_t))dlsym(library, "plugin_run");

#ifdef PLT_ONLY
	for (int i = 0; run && i < 1000; i++)
		x += run(x);
#endif
	return run ? run(x) + 1 : 0;
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	until_start(argc, argv);
	for (unsigned turn = 0; until_goes_on(); turn++) {
		void *library = dlopen(argv[2 + turn % 2], RTLD_LAZY);

		if (!library)
			return 1;
		sink += call(library, sink);
#ifndef PLT_ONLY
		dlclose(library);
#endif
	}
	return 0;
}

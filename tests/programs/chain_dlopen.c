/* SPDX-License-Identifier: Apache-2.0 */
/* chain_dlopen SECONDS LIBRARY: main → chain_run in a library that was loaded while running. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	void (*run)(long seconds);
	void *library;

	if (argc != 3)
		return 2;
	library = dlopen(argv[2], RTLD_NOW);
	run = library ? (void (*)(long))dlsym(library, "chain_run") : NULL;
	if (!run) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	run(atol(argv[1])); /* call: main of chain_dlopen */
	return 0;
}

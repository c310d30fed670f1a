/* SPDX-License-Identifier: Apache-2.0 */
/* embeds_python KEYS PROGRAM LIBRARY…: a program whose interpreters are no files of its own: the
 * first library runs the program, once so many keys of pthread_key_create() are used up; the others
 * are only loaded. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	void (*initialize)(int) = NULL;
	int (*run)(const char *) = NULL;

	if (argc < 4)
		return 2;
	for (int i = atoi(argv[1]); i > 0; i--)
		if (pthread_key_create(&(pthread_key_t){0}, NULL))
			return 1;
	for (int i = 3; i < argc; i++) {
		void *library = dlopen(argv[i], RTLD_NOW | (i == 3 ? RTLD_GLOBAL : RTLD_LOCAL));

		if (!library) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		if (i > 3)
			continue;
		*(void **)&initialize = dlsym(library, "Py_InitializeEx");
		*(void **)&run = dlsym(library, "PyRun_SimpleString");
	}
	if (!initialize || !run)
		return 1;
	initialize(0);
	return run(argv[2]);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* One target per parser of foreign bytes. With clang and -DFUZZ_LIBFUZZER it is a libFuzzer target;
 * otherwise its own main() runs every file named on the command line (make check replays the corpus
 * under ASan and UBSan). Each *_fuzz.c defines fuzz_one(). */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void fuzz_one(const uint8_t *bytes, size_t length);

#ifdef FUZZ_LIBFUZZER
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	fuzz_one(bytes, length);
	return 0;
}
#else
int main(int argc, char **argv)
{
	int run = 0;

	for (int i = 1; i < argc; i++) {
		FILE *file = fopen(argv[i], "rb");
		uint8_t *bytes = NULL;
		long length = -1;

		if (file && !fseek(file, 0, SEEK_END) && (length = ftell(file)) >= 0) {
			rewind(file);
			/* exactly as long as the input, so that ASan sees every step outside */
			bytes = malloc(length ? (size_t)length : 1);
			if (fread(bytes, 1, (size_t)length, file) == (size_t)length) {
				fuzz_one(bytes, (size_t)length);
				printf("ok %d - %s\n", ++run, argv[i]);
			}
		}
		free(bytes);
		if (file)
			fclose(file);
	}
	printf("1..%d\n", run);
	return run != argc - 1;
}
#endif

#endif

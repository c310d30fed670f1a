/* SPDX-License-Identifier: Apache-2.0 */
/* chain_pie, chain_static, chain_nopie SECONDS: main → chain_run → …
 * Built with -DIN_THREAD (chain_thread): main → pthread_create → thread_main → chain_run → … */
#include <pthread.h>
#include <stdlib.h>

#include "tests/programs/chain.h"

#ifdef IN_THREAD
static void *thread_main(void *argument)
{
	chain_run(*(long *)argument); /* call: thread_main */
	return argument;
}
#endif

int main(int argc, char **argv)
{
	long seconds = argc > 1 ? atol(argv[1]) : 1;

#ifdef IN_THREAD
	pthread_t thread;

	if (pthread_create(&thread, NULL, thread_main, &seconds))
		return 1;
	pthread_join(thread, NULL);
#else
	chain_run(seconds); /* call: main */
#endif
	return 0;
}

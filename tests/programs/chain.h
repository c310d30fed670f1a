/* SPDX-License-Identifier: Apache-2.0 */
/* A call chain of known shape: chain_run → level_1 → level_2 → level_3 → level_4 → leaf, for so
 * many seconds. Frame pointers everywhere, no library call inside the loop (system calls are made
 * in place), so that every stack taken in it is known exactly: tests read the line numbers from the
 * "call:" marks in chain.c. */
#ifndef TESTS_PROGRAMS_CHAIN_H
#define TESTS_PROGRAMS_CHAIN_H

void chain_run(long seconds);

#endif

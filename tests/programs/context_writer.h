/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PROGRAMS_CONTEXT_WRITER_H
#define TESTS_PROGRAMS_CONTEXT_WRITER_H

int context_publish(const char *service);
void context_begin(const unsigned char trace[16], const unsigned char span[8], const char *route,
		   const char *number);
void context_end(void);

#endif

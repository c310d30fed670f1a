/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of deploy/include/farflame_context.h as a program or a library has it: the thread's
 * pointer is reached by whatever way this file is compiled for. */
#include "tests/programs/context_writer.h"

#include "deploy/include/farflame_context.h"

static const char *const keys[] = {"http.route", "request.number"};
static __thread struct farflame_request request;

int context_publish(const char *service)
{
	const struct farflame_attribute own[] = {{"service.name", service},
						 {"deployment.environment.name", "test"}};

	return farflame_context_publish(own, 2, keys, 2);
}

void context_begin(const unsigned char trace[16], const unsigned char span[8], const char *route,
		   const char *number)
{
	farflame_request_begin(&request, trace, span);
	farflame_request_add(&request, 0, route);
	farflame_request_add(&request, 1, number);
	farflame_request_attach(&request);
}

void context_end(void)
{
	farflame_request_attach(NULL);
}

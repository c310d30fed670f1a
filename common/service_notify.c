/* SPDX-License-Identifier: Apache-2.0 */
#include "common/service_notify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* "/run/…" or "@abstract"; false: other kinds (vsock) are not for services of this host. */
static bool take_address(struct sockaddr_un *address, socklen_t *length)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t used = path ? strlen(path) : 0;

	if (used < 2 || used >= sizeof(address->sun_path) || (*path != '/' && *path != '@'))
		return false;
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(address->sun_path, path, used);
	if (*path == '@')
		address->sun_path[0] = 0;
	*length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + used);
	return true;
}

bool service_notify(const char *format, ...)
{
	struct sockaddr_un address;
	socklen_t length;
	char text[500];
	va_list args;
	int fd, used;
	bool ok;

	if (!take_address(&address, &length))
		return false;
	va_start(args, format);
	used = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (used < 0)
		return false;
	if ((size_t)used >= sizeof text)
		used = sizeof text - 1;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	ok = sendto(fd, text, (size_t)used, MSG_NOSIGNAL | MSG_DONTWAIT,
		    (const struct sockaddr *)&address, length) == used;
	close(fd);
	return ok;
}

int64_t service_watchdog_ms(void)
{
	const char *wanted = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

	if (!wanted || (pid && *pid && atoll(pid) != getpid()))
		return 0;
	return atoll(wanted) / 1000;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the service manager is told, by the protocol of sd_notify(3): a datagram to the socket that
 * $NOTIFY_SOCKET names. Without one nothing is sent. */
#ifndef COMMON_SERVICE_NOTIFY_H
#define COMMON_SERVICE_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* Assignments, one a line: "READY=1\nSTATUS=…". False: nobody asked for it, or it did not arrive.
 */
bool service_notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* How often the manager wants to hear WATCHDOG=1 from this process, at least; 0: it does not. */
int64_t service_watchdog_ms(void);

#endif

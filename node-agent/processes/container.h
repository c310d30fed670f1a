/* SPDX-License-Identifier: Apache-2.0 */
/* The text of /proc/PID/cgroup → container, service, pod; unit, path. Pure. */
#ifndef NODE_AGENT_PROCESSES_CONTAINER_H
#define NODE_AGENT_PROCESSES_CONTAINER_H

#include <stddef.h>

enum {
	CONTAINER_ID_ROOM = 80,       /* 64 hexadecimal digits, or ECS' <32 hex>-<digits> */
	CONTAINER_SERVICE_ROOM = 128, /* longer unit names are cut */
	CONTAINER_POD_ROOM = 48,      /* a UUID */
	CONTAINER_PATH_ROOM = 256,    /* longer paths are cut */
};

struct container {
	char id[CONTAINER_ID_ROOM];           /* "" = none */
	char service[CONTAINER_SERVICE_ROOM]; /* systemd unit without ".service"; "" in containers
					       */
	char pod[CONTAINER_POD_ROOM];         /* the pod's uid: its name is not in the path */
	/* Of the lines that say more than "/" version 2's, else systemd's, else the first: */
	char unit[CONTAINER_SERVICE_ROOM]; /* innermost, "cron.service", "session-3.scope"; "": none
					    */
	char path[CONTAINER_PATH_ROOM];    /* the cgroup's */
};

/* Lines are `hierarchy:controllers:path`, cgroups(7). Version 2's line and systemd's own hierarchy
 * decide; others are looked at when those name no container. What is known of path shapes: docker
 * and containerd `…/<64 hex>`, systemd's `docker-<id>.scope`, `cri-containerd-<id>.scope`,
 * `crio-<id>.scope`, `libpod-<id>.scope`, podman's `libpod-<id>`, ECS `…/<32 hex>-<digits>`,
 * Kubernetes `kubepods…-pod<uid>.slice` with '_' for '-', or `pod<uid>`. */
void container_read(const char *text, size_t length, struct container *container);

#endif

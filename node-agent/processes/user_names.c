/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/user_names.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { KEPT = 64 };

static const char path[] = "/etc/passwd";

static struct {
	struct timespec changed; /* of the file that they are of */
	struct {
		uid_t uid;
		char name[USER_NAME_ROOM]; /* "": free */
	} of[KEPT];
} kept;

static void read_name(uid_t uid, char out[USER_NAME_ROOM])
{
	FILE *file = fopen(path, "re");
	const struct passwd *user;

	snprintf(out, USER_NAME_ROOM, "%u", (unsigned)uid);
	while (file && (user = fgetpwent(file)))
		if (user->pw_uid == uid && *user->pw_name) {
			snprintf(out, USER_NAME_ROOM, "%s", user->pw_name);
			break;
		}
	if (file)
		fclose(file);
}

void user_name_of(uid_t uid, char out[USER_NAME_ROOM])
{
	const unsigned at = (unsigned)uid % KEPT;
	struct stat st = {0};

	stat(path, &st);
	if (memcmp(&st.st_mtim, &kept.changed, sizeof kept.changed)) {
		memset(&kept, 0, sizeof kept);
		kept.changed = st.st_mtim;
	}
	if (kept.of[at].uid != uid || !*kept.of[at].name) {
		kept.of[at].uid = uid;
		read_name(uid, kept.of[at].name);
	}
	memcpy(out, kept.of[at].name, USER_NAME_ROOM);
}

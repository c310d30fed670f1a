/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/cpu_plug.h"

bool cpu_plug_follow(const struct cpu_plug *user, void *context, const bool *is_online,
		     unsigned count, struct error *err)
{
	for (unsigned cpu = 0; cpu < count; cpu++) {
		struct error failed = {0};

		if (user->has(context, cpu) && (!user->look(context, cpu) || !is_online[cpu]))
			user->remove(context, cpu);
		if (user->has(context, cpu) || !is_online[cpu] ||
		    user->add(context, cpu, &failed) || failed.kind == ERROR_NOT_FOUND)
			continue;
		if (err)
			*err = failed;
		return false;
	}
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/samples.h"

#include <string.h>

#define TYPE_NAME(name_, unit_, gauge_, sampling_)     name_,
#define TYPE_UNIT(name_, unit_, gauge_, sampling_)     unit_,
#define TYPE_GAUGE(name_, unit_, gauge_, sampling_)    gauge_,
#define TYPE_SAMPLING(name_, unit_, gauge_, sampling_) SAMPLING_##sampling_,
static const char *const names[] = {PROFILE_TYPES(TYPE_NAME)};
static const char *const units[] = {PROFILE_TYPES(TYPE_UNIT)};
static const bool gauges[] = {PROFILE_TYPES(TYPE_GAUGE)};
static const enum profile_sampling samplings[] = {PROFILE_TYPES(TYPE_SAMPLING)};

enum { TYPE_COUNT = sizeof names / sizeof *names };

int profile_type_find(const char *name, size_t length)
{
	for (int i = 0; i < TYPE_COUNT; i++)
		if (strlen(names[i]) == length && !memcmp(names[i], name, length))
			return i;
	return -1;
}

const char *profile_type_name(unsigned number)
{
	return number < TYPE_COUNT ? names[number] : NULL;
}

const char *profile_type_unit(unsigned number)
{
	return number < TYPE_COUNT ? units[number] : NULL;
}

bool profile_type_is_gauge(unsigned number)
{
	return number < TYPE_COUNT && gauges[number];
}

enum profile_sampling profile_type_sampling(unsigned number)
{
	return number < TYPE_COUNT ? samplings[number] : SAMPLING_UNEVEN;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A library for plugins.c: functions that call many others through the PLT, each for the first
 * time. */
#include <stdint.h>

extern uint64_t plugin_back(uint64_t x);

#define FUNCTION(n_)                                                   \
	__attribute__((noinline)) uint64_t PLUGIN_NAME(n_)(uint64_t x) \
	{                                                              \
		volatile char room[8 + (n_)*24];                       \
                                                                       \
		room[0] = (char)x;                                     \
		return plugin_back(x + (n_)) + (uint64_t)room[0];      \
	}
#define JOINED(a_, b_, c_)  a_##b_##c_
#define JOINED2(a_, b_, c_) JOINED(a_, b_, c_)
#define PLUGIN_NAME(n_)     JOINED2(PLUGIN, _, n_)
FUNCTION(0)
FUNCTION(1)
FUNCTION(2) FUNCTION(3) FUNCTION(4) FUNCTION(5) FUNCTION(6) FUNCTION(7) FUNCTION(8) FUNCTION(9)
	FUNCTION(10) FUNCTION(11) FUNCTION(12) FUNCTION(13) FUNCTION(14) FUNCTION(15)

		uint64_t plugin_run(uint64_t x)
{
	x += PLUGIN_NAME(0)(x) + PLUGIN_NAME(1)(x) + PLUGIN_NAME(2)(x) + PLUGIN_NAME(3)(x);
	x += PLUGIN_NAME(4)(x) + PLUGIN_NAME(5)(x) + PLUGIN_NAME(6)(x) + PLUGIN_NAME(7)(x);
	x += PLUGIN_NAME(8)(x) + PLUGIN_NAME(9)(x) + PLUGIN_NAME(10)(x) + PLUGIN_NAME(11)(x);
	x += PLUGIN_NAME(12)(x) + PLUGIN_NAME(13)(x) + PLUGIN_NAME(14)(x) + PLUGIN_NAME(15)(x);
	return x;
}

// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

/*
#include <stdint.h>
extern uint64_t callback(uint64_t x);

static __attribute__((noinline)) uint64_t c_leaf(uint64_t x)
{
	for (int i = 0; i < 2000; i++)
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
	return x;
}

static __attribute__((noinline)) uint64_t c_work(uint64_t x, int depth)
{
	volatile char room[50];

	room[0] = (char)x;
	if (depth > 0)
		return c_work(x + 1, depth - 1) + (uint64_t)room[0];
	return c_leaf(x) + (x % 4 ? 0 : callback(x));
}
*/
import "C"

//export callback
func callback(x C.uint64_t) C.uint64_t {
	return C.uint64_t(down(4, uint64(x)))
}

func foreign(x uint64) uint64 { return uint64(C.c_work(C.uint64_t(x), 6)) }

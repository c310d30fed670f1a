// SPDX-License-Identifier: Apache-2.0

//go:build cgo
// +build cgo

package main

/*
static unsigned long spin_in_c(unsigned long x, long turns)
{
	volatile unsigned long y = x;

	for (long i = 0; i < turns; i++)
		y = y * 1664525 + 1013904223;
	return y;
}
*/
import "C"

func spin(turns int) {
	C.spin_in_c(C.ulong(turns), C.long(turns))
}

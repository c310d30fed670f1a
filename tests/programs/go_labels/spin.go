// SPDX-License-Identifier: Apache-2.0

//go:build !cgo
// +build !cgo

package main

//go:noinline
func spin(turns int) {
	x := sink
	for i := 0; i < turns; i++ {
		x = x*1664525 + 1013904223
	}
	sink = x
}

// SPDX-License-Identifier: Apache-2.0

//go:build !cgo

package main

func foreign(x uint64) uint64 { return leaf(x) }

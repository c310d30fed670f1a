// SPDX-License-Identifier: Apache-2.0

// Go: goroutines that are preempted, leaves without a frame, defer, the collector, growing stacks. Built
// also stripped, position-independent, and with calls into C and back (cgo.go).
package main

import (
	"os"
	"sort"
	"strconv"
	"strings"
	"time"
)

var sink uint64

//go:noinline
func leaf(x uint64) uint64 {
	for i := 0; i < 100; i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

//go:noinline
func down(depth int, x uint64) uint64 {
	var room [20]uint64
	room[x%20] = x
	if depth > 0 {
		return down(depth-1, x+1) + room[(x+1)%20]
	}
	return leaf(x) + room[x%20]
}

//go:noinline
func deferred(x uint64) (result uint64) {
	defer func() { result += leaf(x) }()
	return down(3, x)
}

func allocates(x uint64) uint64 {
	words := make([]string, 0, 100)
	for i := uint64(0); i < 100; i++ {
		words = append(words, strconv.FormatUint(leaf(x+i), 36))
	}
	sort.Strings(words)
	return uint64(len(strings.Join(words, ",")))
}

func goroutine(turn uint64, done chan uint64) {
	done <- down(int(turn%200), turn) + deferred(turn) + allocates(turn) + foreign(turn)
}

func main() {
	seconds := 1.0
	if len(os.Args) > 1 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	done := make(chan uint64)
	for turn := uint64(0); time.Now().Before(end); turn += 2 {
		go goroutine(turn, done)
		go goroutine(turn+1, done)
		sink += <-done + <-done
	}
}

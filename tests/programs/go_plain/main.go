// SPDX-License-Identifier: Apache-2.0

// Takes memory until its input ends, and never asks for its profile: the linker leaves that out.
package main

import (
	"os"
	"time"
)

var kept []byte

func main() {
	go func() {
		for {
			kept = make([]byte, 1<<20)
			time.Sleep(time.Millisecond)
		}
	}()
	os.Stdin.Read(make([]byte, 1))
}

// SPDX-License-Identifier: Apache-2.0

// Takes memory at three places and keeps a tally of each: what it took, what of it is in use. On a
// line of its input it says the tally; "free" gives all back first. Its rate is small, so that
// samples are many; the profile that its own runtime keeps goes to a file.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"time"
)

type tally struct {
	taken, used int64
}

var (
	small, large, array tally
	kept                [][]byte
	arrays              []*[4096]byte
	turn                int
)

//go:noinline
func takeSmall() []byte {
	small.taken += 96
	return make([]byte, 96)
}

//go:noinline
func takeLarge(size int) []byte {
	large.taken += 32768
	return make([]byte, size)
}

//go:noinline
func takeArray() *[4096]byte {
	array.taken += 4096
	return new([4096]byte)
}

// Every fourth piece is kept.
func takeSome() {
	for i := 0; i < 400; i++ {
		piece := takeSmall()
		if i%4 == 0 {
			kept = append(kept, piece)
			small.used += 96
		}
	}
	for i := 0; i < 4; i++ {
		piece := takeLarge(32768 - turn%2)
		if i%4 == 0 {
			kept = append(kept, piece)
			large.used += 32768
		}
	}
	for i := 0; i < 16; i++ {
		piece := takeArray()
		if i%4 == 0 {
			arrays = append(arrays, piece)
			array.used += 4096
		}
	}
	turn++
}

func writeProfile(path string) {
	file, err := os.Create(path)
	if err == nil {
		runtime.GC()
		runtime.GC() // the profile is as of the last collection but one
		err = pprof.Lookup("heap").WriteTo(file, 0)
		file.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func say() {
	runtime.GC()
	runtime.GC()
	fmt.Printf("small %d %d large %d %d array %d %d\n", small.taken, small.used, large.taken,
		large.used, array.taken, array.used)
}

func main() {
	if rate, err := strconv.Atoi(os.Args[1]); err == nil {
		runtime.MemProfileRate = rate
	}
	lines := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	for lines.Scan() {
		command := lines.Text()
		if command == "free" {
			kept, arrays = nil, nil
			small.used, large.used, array.used = 0, 0, 0
		} else if command == "profile" {
			writeProfile(os.Args[2])
		} else if rounds, err := strconv.Atoi(command); err == nil {
			for i := 0; i < rounds; i++ {
				takeSome()
				if i%100 == 99 {
					time.Sleep(time.Millisecond)
				}
			}
		}
		say()
	}
}

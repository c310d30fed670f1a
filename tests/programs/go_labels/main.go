// SPDX-License-Identifier: Apache-2.0

// Works under labels of runtime/pprof, several goroutines on each thread, each goroutine under one label after
// the other. What it does is told by lines on its input; each is answered by one line:
//
//	work MS [FILE]    serves all endpoints; the runtime's own CPU profile goes to FILE; units by function
//	nobody MS         works without labels
//	requests N UNITS  N requests with ids of their own in labels
//	waits N MS        waits so long in a system call
//	many MS           works under more and longer labels than are read
//	takes N           takes memory
//	touches MB        touches so much memory for the first time
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const turns = 150000 // some tenths of a millisecond

var (
	sink   uint64
	tally  [4]int64
	pieces [][]byte
)

//go:noinline
func serveA(units int) {
	x := sink
	for i := 0; i < units*turns; i++ {
		x = x*1664525 + 1013904223
	}
	sink = x
	atomic.AddInt64(&tally[0], int64(units))
}

//go:noinline
func serveB(units int) {
	x := sink
	for i := 0; i < units*turns; i++ {
		x = x*1664525 + 1013904223
	}
	sink = x
	atomic.AddInt64(&tally[1], int64(units))
}

//go:noinline
func serveC(units int) {
	spin(units * turns)
	atomic.AddInt64(&tally[2], int64(units))
}

//go:noinline
func serveNobody(units int) {
	x := sink
	for i := 0; i < units*turns; i++ {
		x = x*1664525 + 1013904223
	}
	sink = x
	atomic.AddInt64(&tally[3], int64(units))
}

//go:noinline
func waitHere(ms int64) {
	wait := syscall.NsecToTimespec(ms * 1e6)
	syscall.Nanosleep(&wait, nil)
}

//go:noinline
func takeHere() {
	pieces = append(pieces, make([]byte, 4096))
}

//go:noinline
func touchHere(bytes int) {
	memory, err := syscall.Mmap(-1, 0, bytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	syscall.Madvise(memory, 15) // MADV_NOHUGEPAGE
	for i := 0; i < bytes; i += 4096 {
		memory[i] = 1
	}
	syscall.Munmap(memory)
}

func under(labels pprof.LabelSet, f func()) {
	pprof.Do(context.Background(), labels, func(context.Context) { f() })
}

func round(worker string) {
	serveNobody(1)
	under(pprof.Labels("endpoint", "/a", "worker", worker), func() { serveA(3) })
	under(pprof.Labels("worker", worker, "endpoint", "/b", "thread.name", "no"), func() {
		serveB(1)
		runtime.Gosched()
		serveB(1)
	})
	under(pprof.Labels("endpoint", "/c"), func() { serveC(1) })
}

func workers(f func(number int)) {
	var group sync.WaitGroup

	for i := 0; i < 6; i++ {
		group.Add(1)
		go func(number int) {
			defer group.Done()
			f(number)
		}(i)
	}
	group.Wait()
}

func work(ms int, file string) {
	end := time.Now().Add(time.Duration(ms) * time.Millisecond)

	tally = [4]int64{}
	if file != "" {
		out, err := os.Create(file)
		if err != nil {
			panic(err)
		}
		defer out.Close()
		pprof.StartCPUProfile(out)
		defer pprof.StopCPUProfile()
	}
	workers(func(number int) {
		for time.Now().Before(end) {
			round(fmt.Sprint("w", number))
		}
	})
}

func requests(count, units int) {
	serve := []func(int){serveA, serveB, serveC}
	var next int64

	workers(func(int) {
		for n := int(atomic.AddInt64(&next, 1)); n <= count; n = int(atomic.AddInt64(&next, 1)) {
			labels := pprof.Labels("trace_id", fmt.Sprintf("%032x", n), "span_id", fmt.Sprintf("%016X", n),
				"endpoint", "/"+string(rune('a'+n%3)))
			under(labels, func() { serve[n%3](units) })
		}
	})
}

func many(ms int) {
	var pairs []string

	for i := 0; i < 10; i++ {
		pairs = append(pairs, fmt.Sprintf("%c%s", 'a'+i, strings.Repeat("k", 59)), strings.Repeat(string(rune('A'+i)), 120))
	}
	pairs = append(pairs, strings.Repeat("l", 65), "left out")
	end := time.Now().Add(time.Duration(ms) * time.Millisecond)
	for time.Now().Before(end) {
		under(pprof.Labels(pairs...), func() { serveA(1) })
		under(pprof.Labels("cut", strings.Repeat("v", 129)), func() { serveB(1) })
	}
}

func main() {
	var a, b int
	var command, file string

	runtime.GOMAXPROCS(2)
	runtime.MemProfileRate = 4096
	in := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	for in.Scan() {
		command, file, a, b = "", "", 0, 0
		fmt.Sscan(in.Text(), &command, &a)
		switch command {
		case "work":
			fmt.Sscan(in.Text(), &command, &a, &file)
			work(a, file)
		case "nobody":
			end := time.Now().Add(time.Duration(a) * time.Millisecond)
			for time.Now().Before(end) {
				serveNobody(1)
			}
		case "requests":
			fmt.Sscan(in.Text(), &command, &a, &b)
			requests(a, b)
		case "waits":
			fmt.Sscan(in.Text(), &command, &a, &b)
			for i := 0; i < a; i++ {
				under(pprof.Labels("endpoint", "/wait"), func() { waitHere(int64(b)) })
			}
		case "touches":
			under(pprof.Labels("endpoint", "/touch"), func() { touchHere(a << 20) })
		case "many":
			many(a)
		case "takes":
			pieces = nil
			under(pprof.Labels("endpoint", "/take"), func() {
				for i := 0; i < a; i++ {
					takeHere()
				}
			})
		}
		fmt.Println("serveA", tally[0], "serveB", tally[1], "serveC", tally[2], "serveNobody", tally[3])
	}
}

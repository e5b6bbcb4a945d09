// SPDX-License-Identifier: Apache-2.0
// Moves its stacks, recovers, and collects garbage. With an argument it ends by a panic.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
)

//go:noinline
func deep(n int) int {
	if n == 0 {
		panic("at the bottom")
	}
	return deep(n-1) + 1
}

func caught(n int) (err interface{}) {
	defer func() { err = recover() }()
	deep(n)
	return nil
}

func main() {
	var wg sync.WaitGroup
	var mu sync.Mutex
	sum := 0
	for i := 0; i < 50; i++ {
		wg.Add(1)
		go func(i int) {
			defer wg.Done()
			x := 0
			for j := 0; j < 100000; j++ {
				x = x*31 + j
				if j%10000 == 0 {
					runtime.Gosched()
				}
			}
			mu.Lock()
			sum += x & 0xff
			mu.Unlock()
			if caught(i) == nil {
				fmt.Println("no panic")
			}
		}(i)
	}
	wg.Wait()
	runtime.GC()
	fmt.Println(sum)
	if len(os.Args) > 1 {
		deep(3)
	}
}

// SPDX-License-Identifier: Apache-2.0
// Victim `gophers`: a Go program whose goroutines grow their stacks, panic and recover, and move
// between threads. Speaks the protocol of victim.h.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

var leafCalls, plainCalls, deepCalls, panicCalls uint64

//go:noinline
func leaf(x uint64) uint64 {
	atomic.AddUint64(&leafCalls, 1)
	return (x^3)*0x9E3779B97F4A7C15 ^ x>>29
}

//go:noinline
func plain(x uint64) uint64 {
	atomic.AddUint64(&plainCalls, 1)
	return leaf(x) + leaf(x+1)
}

// Its stack is copied while it grows.
//
//go:noinline
func deep(depth int, x uint64) uint64 {
	var block [64]uint64
	atomic.AddUint64(&deepCalls, 1)
	block[depth%64] = x
	if depth == 0 {
		return plain(x)
	}
	return deep(depth-1, x+1) + block[depth%64]
}

//go:noinline
func panicOdd(x uint64) uint64 {
	atomic.AddUint64(&panicCalls, 1)
	if x%2 == 1 {
		panic("odd")
	}
	return plain(x)
}

func recovered(x uint64) (value uint64) {
	defer func() {
		if recover() != nil {
			value = x + 1000
		}
	}()
	return panicOdd(x)
}

type node struct {
	pad    [3]uint64
	weight uint64
}

// A load of nil here is at the first instruction, and next to the return.
//
//go:noinline
func (n *node) own() uint64 {
	return n.weight
}

// Here it is between a frame's making and its end.
//
//go:noinline
func (n *node) sum(x uint64) uint64 {
	x += leaf(x)
	return x ^ n.weight
}

// Behind writes, at the end of a function without a frame.
//
//go:noinline
func (n *node) set(x *uint64, y uint64) uint64 {
	*x = y
	return y + n.weight
}

//go:noinline
func fromNil(n *node, which, x uint64) (value uint64) {
	defer func() {
		if recover() != nil {
			value = x + 7
		}
	}()
	switch which % 3 {
	case 0:
		return n.own()
	case 1:
		return n.sum(x)
	}
	return n.set(&x, x+5)
}

func weights(round uint64) (sum uint64) {
	n := &node{weight: round}
	if round%2 == 0 {
		n = nil
	}
	for which := uint64(0); which < 3; which++ {
		sum = sum*31 + fromNil(n, which, round)
	}
	return sum
}

func run(rounds uint64) (digest uint64) {
	const goroutines = 8
	results := make([]uint64, goroutines)
	var group sync.WaitGroup
	for i := range results {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			for round := uint64(0); round < rounds; round++ {
				results[i] = results[i]*31 + deep(100, round+uint64(i)) + recovered(round) + weights(round)
				runtime.Gosched()
			}
		}(i)
	}
	group.Wait()
	for _, result := range results {
		digest = leaf(digest ^ result)
	}
	return digest
}

func main() {
	out := bufio.NewWriter(os.Stdout)
	answer := func(text string) {
		fmt.Fprint(out, text)
		out.Flush()
	}
	answer("ready\n")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		switch words[0] {
		case "run":
			var rounds uint64
			fmt.Sscan(words[1], &rounds)
			answer(fmt.Sprintf("result %d\nerrors 0\nend\n", run(rounds)))
		case "counts":
			answer(fmt.Sprintf("main.leaf %d\nmain.plain %d\nmain.deep %d\nmain.panicOdd %d\nend\n",
				leafCalls, plainCalls, deepCalls, panicCalls))
		default:
			return
		}
	}
}

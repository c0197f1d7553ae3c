package main

import "testing"

func TestAtMostFor(t *testing.T) {
	for pods, want := range map[int]Bar{500: atMost(0.2), 20_000: atMost(0.2), 20_001: noBar} {
		b := &bench{data: &dataset{Pods: pods}}
		if got := b.atMostFor(0.2); got != want {
			t.Errorf("bar for %d pods = %+v, want %+v", pods, got, want)
		}
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestLargeFlags(t *testing.T) {
	if _, err := parseFlags([]string{"--pods", "1000000"}); err != nil {
		t.Error(err)
	}
	if _, err := parseFlags([]string{"--pods", "1000000", "--rows", "cold"}); err == nil || !strings.Contains(err.Error(), "one group") {
		t.Errorf("groups of rows with a stand-in: error %v", err)
	}
	if o, err := parseFlags([]string{"--pods", "20000", "--stand-in", "--peers", "dynamic"}); err != nil || !o.standIn() || o.json == "test/results/bench-20000.json" || o.measures(postgreSQL) {
		t.Errorf("a stand-in of few pods and one peer: %+v, %v", o, err)
	}
	if _, err := parseFlags([]string{"--pods", "20000", "--clusters", "20", "--peers", "dynamic"}); err == nil {
		t.Error("peers of several clusters are accepted")
	}
}

func TestMetric(t *testing.T) {
	text := []byte("# HELP a_b c\na_bc 7\na_b{cluster=\"x\",kind=\"y\"} 1.5e+06\n")
	for name, want := range map[string]float64{"a_b": 1.5e6, "a_bc": 7, "a": 0} {
		if got, err := metric(text, name); err != nil || got != want {
			t.Errorf("%s = %v (%v), want %v", name, got, err, want)
		}
	}
}

// TestStandInProcess: it serves until its orders end, and refuses those it does not know.
func TestStandInProcess(t *testing.T) {
	orders, give := io.Pipe()
	replies, out := io.Pipe()
	ended := make(chan int, 1)
	go func() { ended <- runStandIn([]string{"100"}, orders, out) }()
	var first reply
	if err := json.NewDecoder(replies).Decode(&first); err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(first.Address + "/api/v1/pods?limit=1")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || !bytes.Contains(body, []byte(`"remainingItemCount":99`)) {
		t.Errorf("%.300s (%v)", body, err)
	}
	give.Close()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, args := range [][]string{{}, {"many"}, {"0"}} {
		if code := runStandIn(args, strings.NewReader(""), io.Discard); code != 1 {
			t.Errorf("%q: exit code %d", args, code)
		}
	}
	if code := runStandIn([]string{"1"}, strings.NewReader("churn 100\nchurn 0\nchurn 0\n"), io.Discard); code != 0 {
		t.Errorf("changes that begin and end: exit code %d", code)
	}
	if code := runStandIn([]string{"1"}, strings.NewReader("dance\n"), io.Discard); code != 1 {
		t.Errorf("an unknown order: exit code %d", code)
	}
}

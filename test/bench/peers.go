package main

import (
	"fmt"
	"slices"
	"strings"
)

// Peers that can be left out, since they need many times the memory and time of
// informerd.
const (
	thrownAway        = "get"
	typedInformer     = "typed"
	dynamicInformer   = "dynamic"
	controllerRuntime = "controller-runtime"
	apiServer         = "apiserver" // asked the same questions
	postgreSQL        = "postgres"  // asked the same questions, where there is a stand-in
)

var allPeers = []string{thrownAway, typedInformer, dynamicInformer, controllerRuntime, apiServer, postgreSQL}

// parsePeers reads a list of peers; "none" is informerd alone.
func parsePeers(text string) ([]string, error) {
	if text == "none" {
		return nil, nil
	}
	peers := strings.Split(text, ",")
	for _, p := range peers {
		if !slices.Contains(allPeers, p) {
			return nil, fmt.Errorf("--peers: there is no peer %q: known are %s, or none", p, strings.Join(allPeers, ", "))
		}
	}
	return peers, nil
}

// measures reports whether a peer is measured. Subjects that are parts of
// informerd always are.
func (o options) measures(subject string) bool {
	return !slices.Contains(allPeers, subject) || slices.Contains(o.peers, subject)
}

// withoutPeers takes the bars off rows whose peer was left out, and keeps one of
// those that are the same then.
func withoutPeers(rows []Row) []Row {
	var kept []Row
	for _, row := range rows {
		if !row.Peer.exists() && row.Bar.Of == ofRatio {
			row.Bar = noBar
		}
		same := func(r Row) bool { return r.What == row.What && r.Ours.Name == row.Ours.Name }
		if !row.Peer.exists() && row.Bar == noBar && slices.ContainsFunc(rows, func(r Row) bool { return same(r) && (r.Peer.exists() || r.Bar.Of == ofFigure) }) {
			continue // said by another row
		}
		if !row.Peer.exists() && row.Bar == noBar && slices.ContainsFunc(kept, same) {
			continue
		}
		kept = append(kept, row)
	}
	return kept
}

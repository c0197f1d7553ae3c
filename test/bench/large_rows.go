package main

import (
	"fmt"
	"runtime"
	"strings"
)

func (l *large) rows() []Row {
	pods := float64(l.data.Pods)
	million := pods / 1e6
	ours := func(samples ...float64) Figure { return newFigure("informerd", samples) }
	const saving = 1 // of the rows
	rows := []Row{
		{What: "CPU of a cold sync, each pod", Unit: unitSeconds, Ours: ours(l.coldCPU / pods), Bar: atMost(32e-6), Constant: true},
		{What: fmt.Sprintf("event on a watch after a bare watch, p99 at %d events/s, while first save, graph and search are made", eventRate), Unit: unitSeconds, Ours: ours(quantile(l.saving, 0.99)), Bar: atMost(0.005), Constant: true},
		{What: "anonymous memory with graph and search of everything, at rest", Unit: unitBytes, Ours: ours(l.settled), Bar: atMost(1.2e9 * million)},
		{What: "highest anonymous memory, of sync, first save, questions, relists, changes of the configuration and warm starts", Unit: unitBytes, Ours: worst("informerd", l.peaks), Bar: atMost(1.3 * 1.2e9 * million)},
		{What: "warm start to the first answer of an index", Unit: unitSeconds, Ours: ours(l.warmAnswer...), Bar: atMost(1 * million)},
		{What: "warm start to all pods", Unit: unitSeconds, Ours: ours(l.warmed...), Bar: atMost(5 * million)},
		{What: "warm start until they are known to be current", Unit: unitSeconds, Ours: ours(l.proven...)},
		{What: "warm start until graph and search are prepared", Unit: unitSeconds, Ours: ours(l.prepared...), Bar: noBar},
		{What: fmt.Sprintf("event on a watch after a bare watch, p99 at %d events/s", eventRate), Unit: unitSeconds, Ours: ours(quantile(l.calm, 0.99)), Bar: atMost(0.005), Constant: true},
		{What: "first search then", Unit: unitSeconds, Ours: ours(l.search...), Bar: atMost(0.1), Constant: true},
		{What: "first graph then", Unit: unitSeconds, Ours: ours(l.graph...), Bar: atMost(0.1), Constant: true},
	}
	if l.savedSooner {
		rows[saving].Void = "they were made before the events ended"
	}
	for _, e := range l.exchanges {
		rows = append(rows, Row{What: "highest anonymous memory, of " + e.name, Unit: unitBytes, Ours: ours(e.peak)})
	}
	return rows
}

// questionRows are of questions, first those that no index of informerd answers.
func (l *large) questionRows(sql *tables) []Row {
	million := float64(l.data.Pods) / 1e6
	ours := func(samples []float64) Figure { return newFigure("informerd", samples) }
	var rows []Row
	for _, q := range questions {
		what := strings.ReplaceAll(q.name, "-", " ")
		rows = append(rows,
			Row{What: "question without an index, first time: " + what, Unit: unitSeconds, Ours: ours(l.first[q.name]), Peer: sql.peer(q.name), Bar: atMost(4 * million / float64(runtime.NumCPU()))},
			Row{What: "the same, asked again and again: " + what, Unit: unitSeconds, Ours: ours(l.again[q.name]), Peer: sql.peer(q.name), Bar: atMost(0.05 * million)})
	}
	return append(rows,
		Row{What: "pod with an address, which has no index here, asked again and again", Unit: unitSeconds, Ours: ours(l.again[lookupAddress]), Peer: sql.peer(lookupAddress)},
		Row{What: "pods of an app in full, by an index", Unit: unitSeconds, Ours: ours(l.again[lookupApp]), Peer: sql.peer(lookupApp), Constant: true})
}

// Package soak runs informerd under faults and tells what it did wrong.
package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/test/soak/checker"
	"github.com/informerd/informerd/test/soak/faults"
	"github.com/informerd/informerd/test/soak/history"
	"github.com/informerd/informerd/test/soak/recorder"
	"github.com/informerd/informerd/test/soak/rig"
	"github.com/informerd/informerd/test/soak/traffic"
)

// Options of a soak.
type Options struct {
	// Time is how long faults are made.
	Time time.Duration
	Seed uint64
	// Only are the kinds of faults, by name; empty: all. None makes none.
	Only []string
	None bool
	// Gap is the mean time between two faults of one hand; default 4 s.
	Gap time.Duration
	// Longest bounds each fault; 0: as its kind says.
	Longest time.Duration
	// Settle is how long all may take to be right again at the end; default 90 s.
	Settle time.Duration
	// Program is the informerd under test. Clock says that its wall clock can be set.
	Program string
	Clock   bool
	// Plant names a bug that the program was built with; empty: none.
	Plant string
	// UntilFound ends the soak at the first violation.
	UntilFound bool
	// Dir keeps everything; empty: a directory that is deleted if all went well.
	Dir string
	// Out is where it prints to.
	Out io.Writer
}

// Result is what came of a soak.
type Result struct {
	Seed       uint64
	Faults     map[string]int // by kind
	Skipped    []string
	Counts     checker.Counts
	Changes    int64 // made
	Lists      int   // asked of the API server by informerd
	Violations []checker.Violation
	All        int // violations, those alike included
	Troubles   []error
	Took       time.Duration
}

var (
	configMaps = history.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Prefix: "/registry/configmaps/", Kind: "ConfigMap", Namespaced: true}
	secrets    = history.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Prefix: "/registry/secrets/", Kind: "Secret", Namespaced: true}
	pods       = history.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Prefix: "/registry/pods/", Kind: "Pod", Namespaced: true}
	widgets    = custom("widgets", "Widget", false)
	brittles   = custom("brittles", "Brittle", true)
)

const group = "soak.example.com"

func custom(plural, kind string, loose bool) history.Resource {
	return history.Resource{
		GVR:    schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural},
		Prefix: "/registry/" + group + "/" + plural + "/", Kind: kind, Namespaced: true, Loose: loose,
	}
}

// soak is one that runs.
type soak struct {
	Options
	start    time.Time
	rig      *rig.Rig
	checker  *checker.Checker
	traffic  *traffic.Traffic
	runner   *faults.Runner
	samplers []*sampler
	lists    []listRequest // waiting to be judged; of judge alone
	audit    *auditor
	readers  []*recorder.Recorder
	ready    time.Time // when all was live for the first time

	mu       sync.Mutex // guards all below
	troubles []error
}

func (s *soak) log(format string, args ...any) {
	fmt.Fprintf(s.Out, "%7.1f %s\n", time.Since(s.start).Seconds(), fmt.Sprintf(format, args...))
}

func (s *soak) trouble(err error) {
	s.log("trouble: %v", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.troubles = append(s.troubles, err)
}

// Run runs a soak to its end, or until ctx ends: then the Result is of so far. An error
// says that it could not be run; what it found is in the Result. Nothing of it runs or
// is mounted when Run returns.
func Run(ctx context.Context, opts Options) (_ *Result, err error) {
	s := &soak{Options: opts, start: time.Now()}
	if s.Gap == 0 {
		s.Gap = 4 * time.Second
	}
	if s.Settle == 0 {
		s.Settle = 90 * time.Second
	}
	dir := s.Dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "informerd-soak-"); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	keep := true
	defer func() {
		if keep || s.Dir != "" {
			s.log("everything is kept in %s", dir)
		} else {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	var env []string
	if s.Plant != "" {
		env = []string{"INFORMERD_PLANT=" + s.Plant}
	}
	stable := []history.Resource{configMaps, secrets, pods, widgets}
	s.rig, err = rig.Start(rig.Options{
		Dir: dir, Program: s.Program, Clock: s.Clock, Env: env, Resources: append(slices.Clone(stable), brittles), Log: s.log,
	})
	if err != nil {
		return nil, err
	}
	defer s.rig.Stop()
	if err := s.prepare(ctx, stable); err != nil {
		keep = ctx.Err() == nil
		return nil, err
	}
	result := s.run(ctx)
	keep = result.Failed()
	return result, nil
}

// restarted says whether there was another process of a tier between two moments.
func (s *soak) restarted(from, to time.Time) bool {
	return slices.ContainsFunc(s.samplers, func(s *sampler) bool { return s.restarted(from, to) })
}

// prepare makes what is to be there, and everything that runs.
func (s *soak) prepare(ctx context.Context, stable []history.Resource) error {
	client := s.rig.Clients[0]
	s.samplers = []*sampler{newSampler(s.rig.First), newSampler(s.rig.Second)}
	s.audit = &auditor{file: s.rig.Audit}
	s.checker = checker.New(s.rig.History, checker.Options{
		Delay:  3 * time.Second,
		Faults: func(at time.Time) []string { return s.runner.Timeline.Active(at) },
		SecondTier: func(reader string) bool {
			// The snapshots of the second tier are of its copies.
			return strings.HasPrefix(reader, s.rig.Second.Name+" ") || strings.HasSuffix(reader, " of "+s.rig.Second.Name)
		},
		Silent: func(resource string, at time.Time) time.Time {
			if strings.HasSuffix(resource, faults.AggregatedGroup) {
				// Of an aggregated API nothing says when a bookmark that waited on a slow line
				// was sent (docs/guarantees.md).
				return s.runner.Timeline.Silent(at, faults.Withheld)
			}
			return s.runner.Timeline.Silent(at, time.Second)
		},
		Relisted: func(resource string, from, to time.Time) bool {
			if slices.ContainsFunc(s.samplers, func(s *sampler) bool { return s.relisted(resource, from, to) }) {
				return true
			}
			// What a process listed after its last sample, the API server knows.
			return s.restarted(from, to) && s.audit.listed(resource, from, to)
		},
		Ended: func(resource string, at time.Time) bool {
			return resource == brittles.Name() && slices.ContainsFunc(s.samplers, func(s *sampler) bool { return s.ended(resource, at) })
		},
	})
	s.traffic = traffic.New(traffic.Options{
		Clients: s.rig.Clients, Resources: stable, Namespaces: []string{"soak-a", "soak-b"}, Seed: s.Seed, Writers: 4, Pause: 60 * time.Millisecond,
	})
	env := &faults.Env{Rig: s.rig, Traffic: s.traffic, Checker: s.checker, Client: client, Stable: stable, Brittle: brittles, Log: s.log}
	if err := s.traffic.Prepare(ctx); err != nil {
		return err
	}
	for _, r := range []history.Resource{widgets, brittles} {
		if err := faults.Define(ctx, client, r, faults.Definition(r, nil)); err != nil {
			return err
		}
	}
	if err := env.Fill(ctx, true); err != nil {
		return err
	}
	known, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := s.rig.History.Now().Wait(known); err != nil {
		return err
	}
	var err error
	if env.Aggregated, err = faults.StartAggregated(ctx, client); err != nil {
		return err
	}
	only := s.Only
	s.runner, err = faults.NewRunner(env, faults.Options{Seed: s.Seed, Only: only, Gap: s.Gap, Longest: s.Longest})
	if err != nil {
		return err
	}
	for _, i := range []*rig.Informerd{s.rig.First, s.rig.Second} {
		s.readers = append(s.readers, recorder.New(recorder.Options{
			Target:  recorder.Target{Name: i.Name, URL: i.URL, Instance: i.Instance},
			Checker: s.checker, History: s.rig.History, Resources: append(slices.Clone(stable), brittles), Seed: s.Seed, Few: i == s.rig.Second,
		}))
	}
	for _, sm := range s.samplers {
		if err := s.waitLive(ctx, sm, 2*time.Minute); err != nil {
			return err
		}
	}
	s.ready = time.Now()
	s.log("ready: %v, the rig can do %v; skipped: %v", dirs(s.rig.Dir), s.rig.Has, s.runner.Skipped())
	return nil
}

func dirs(dir string) string { return filepath.Clean(dir) }

func (s *soak) waitLive(ctx context.Context, sm *sampler, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for {
		not := sm.notLive(ctx)
		if len(not) == 0 {
			return nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("%s is not live: %.500s", sm.informerd.Name, strings.Join(not, "; "))
		}
		time.Sleep(250 * time.Millisecond)
	}
}

func (s *soak) run(ctx context.Context) *Result {
	reading, stopReading := context.WithCancel(ctx)
	writing, stopWriting := context.WithCancel(ctx)
	faulting, stopFaults := context.WithTimeout(ctx, s.Time)
	defer stopFaults()
	var readers, writers, watchers sync.WaitGroup
	for _, r := range s.readers {
		readers.Go(func() { _ = r.Run(reading) })
	}
	writers.Go(func() { _ = s.traffic.Run(writing) })
	judging, stopJudging := context.WithCancel(ctx)
	watchers.Go(func() { s.judge(judging, stopFaults) })
	for _, sm := range s.samplers {
		watchers.Go(func() { s.sample(judging, sm) })
	}
	if s.None {
		<-faulting.Done()
	} else {
		s.runner.Run(faulting)
	}
	s.log("faults are over")
	if err := s.heal(ctx); err != nil && ctx.Err() == nil {
		s.trouble(err)
	}
	if ctx.Err() == nil {
		time.Sleep(2 * time.Second) // what changes last must arrive, too
	}
	stopWriting()
	writers.Wait()
	if ctx.Err() == nil && (!s.UntilFound || s.found() == 0) {
		s.settle(ctx)
	}
	stopReading()
	readers.Wait()
	s.drain(ctx)
	stopJudging()
	watchers.Wait()
	return s.result()
}

// heal undoes whatever a fault may have left.
func (s *soak) heal(ctx context.Context) error {
	err := s.rig.Up(ctx)
	if s.rig.Can("proxy") {
		_, perr := s.rig.Ctl(ctx, "proxy", `{"rules":[]}`)
		err = errors.Join(err, perr)
	}
	if s.rig.Can("servers") {
		_, berr := s.rig.Ctl(ctx, "balancer", "normal")
		err = errors.Join(err, berr)
	}
	return err
}

func (s *soak) found() int {
	_, n := s.checker.Violations()
	return n
}

// judge lets the checker look at what can be judged, reads the audit log and
// prints how it goes.
func (s *soak) judge(ctx context.Context, enough func()) {
	last, shown := time.Now(), 0
	died := map[string]bool{}
	defer func() { s.judgeLists(true) }()
	for ctx.Err() == nil {
		time.Sleep(200 * time.Millisecond)
		s.checker.Step()
		if err := s.audit.read(s.listed); err != nil {
			s.trouble(err)
		}
		s.judgeLists(false)
		for _, i := range []*rig.Informerd{s.rig.First, s.rig.Second} {
			if t := i.Trouble(); t != "" && !died[i.Name] {
				died[i.Name] = true
				s.checker.Report(time.Now(), "reply", i.Name, "%s", t)
			}
		}
		if err := s.rig.HistoryErr(); err != nil {
			s.trouble(err)
			enough()
			return
		}
		all, n := s.checker.Violations()
		for _, v := range all[shown:] {
			s.log("VIOLATION %v", v)
		}
		shown = len(all)
		if n > 0 && s.UntilFound {
			enough()
		}
		if time.Since(last) >= 10*time.Second {
			last = time.Now()
			s.progress()
		}
	}
}

// listRequest is a list of the audit log.
type listRequest struct {
	at            time.Time
	resource, uri string
}

// listed notes one list of the audit log.
func (s *soak) listed(at time.Time, resource, uri string) {
	if strings.HasSuffix(resource, ".aggregated."+group) || at.Before(s.ready.Add(10*time.Second)) {
		return // aggregated APIs are always listed anew; everything is at the start
	}
	s.lists = append(s.lists, listRequest{at, resource, uri})
}

// judgeLists judges those lists of which the samples can tell by now whether a 410
// made them: two API servers do not remember the same, so any may say 410 to
// whoever comes from the other.
func (s *soak) judgeLists(all bool) {
	var later []listRequest
	for _, l := range s.lists {
		switch {
		case !all && time.Since(l.at) < 5*time.Second:
			later = append(later, l)
		case !s.samplers[0].expired(l.resource, l.at):
			s.checker.List(l.at, l.resource, l.uri, s.runner.Timeline.Excuses())
		}
	}
	s.lists = later
}

func (s *soak) sample(ctx context.Context, sm *sampler) {
	spread := checker.NewSpread(s.checker)
	for ctx.Err() == nil {
		if sample, ok := sm.sample(ctx); ok {
			s.checker.Lease(sample)
			spread.Sample(sample, s.runner.Timeline.Excuses())
		}
		time.Sleep(time.Second)
	}
}

func (s *soak) progress() {
	c := s.checker.Counts()
	done, failed := s.traffic.Done()
	head, _ := s.rig.History.Now().Head()
	s.log("progress: %d faults, now %v; %d changes (%d failed), history %d at %d; %d answers, %d events checked, %d waiting; %d lists; %d violations",
		len(s.runner.Timeline.Events()), s.runner.Timeline.Active(time.Now()), done, failed, s.rig.History.Now().Number, head,
		c.Answers, c.Events, c.Waiting, s.audit.lists, s.found())
}

// settle waits until everything is as etcd has it and live. A reader that pauses
// between its requests has its time from when it asks, but not for ever.
func (s *soak) settle(ctx context.Context) {
	begun := time.Now()
	shown := begun
	for {
		wrong := s.unsettled(ctx)
		if len(wrong) == 0 {
			s.log("settled")
			return
		}
		if ctx.Err() != nil {
			return
		}
		now, late := time.Now(), false
		for _, w := range wrong {
			if now.Sub(w.since) > s.Settle && now.Sub(begun) > s.Settle || now.Sub(begun) > s.Settle+pauses {
				late = true
				s.checker.Report(now, "settle", w.who, "after %v: %s", now.Sub(begun).Round(time.Second), w.what)
			}
		}
		if late {
			return
		}
		if now.Sub(shown) > 15*time.Second {
			shown = now
			for _, w := range wrong {
				s.log("not settled: %s: %s", w.who, w.what)
			}
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// pauses is how long the pauses of an informer of client-go take at most: one before
// it asks for its watch again, and one more when the answer is that it has to list.
const pauses = 2 * time.Minute

// unsettledReader is one that does not have what it must have.
type unsettledReader struct {
	who, what string
	since     time.Time // when it began to ask; zero if it never pauses
}

func (s *soak) unsettled(ctx context.Context) (wrong []unsettledReader) {
	for _, sm := range s.samplers {
		if not := sm.notLive(ctx); len(not) > 0 {
			wrong = append(wrong, unsettledReader{who: sm.informerd.Name, what: fmt.Sprintf("not live: %.500s", strings.Join(not, "; "))})
		}
	}
	for _, r := range s.readers {
		for _, reader := range r.Settlers() {
			d := reader.Unsettled()
			if d == "" {
				continue
			}
			u := unsettledReader{who: reader.Name(), what: d}
			if asker, ok := reader.(recorder.Asker); ok {
				u.since = asker.AskingSince()
			}
			wrong = append(wrong, u)
		}
	}
	return wrong
}

// drain waits until everything that was told is judged.
func (s *soak) drain(ctx context.Context) {
	deadline := time.Now().Add(20 * time.Second)
	for s.checker.Counts().Waiting > 0 && time.Now().Before(deadline) && ctx.Err() == nil {
		time.Sleep(200 * time.Millisecond)
	}
}

func (s *soak) result() *Result {
	r := &Result{Seed: s.Seed, Faults: map[string]int{}, Skipped: s.runner.Skipped(), Counts: s.checker.Counts(), Lists: s.audit.lists, Took: time.Since(s.start)}
	for _, e := range s.runner.Timeline.Events() {
		r.Faults[e.Kind.Name]++
	}
	r.Changes, _ = s.traffic.Done()
	r.Violations, r.All = s.checker.Violations()
	s.mu.Lock()
	r.Troubles = append(s.troubles, s.runner.Troubles()...)
	s.mu.Unlock()
	for n, reader := range s.readers {
		s.log("reader %d was refused: %v", n+1, reader.Refused())
	}
	return r
}

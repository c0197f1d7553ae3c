package soak

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/informerd/informerd/test/soak/checker"
	"github.com/informerd/informerd/test/soak/rig"
)

// sampler looks at the states of all resources once a second, and remembers when
// which was listed anew.
type sampler struct {
	informerd *rig.Informerd
	client    http.Client

	mu     sync.Mutex // guards all below
	counts map[string]uint64
	lists  map[string][]between // by resource: of which samples only the second showed a new one
	gone   map[string][]between // the same of answers 410
	ends   map[string][]between // the same of the end of a resource
	// restarts are the samples that are of two processes. What the first one did after
	// its last sample is not known.
	restarts []between
	told     map[string]uint64 // counts of 410
	last     time.Time         // when the last sample was asked for
	from     string            // the process that the last one was of
}

func newSampler(i *rig.Informerd) *sampler {
	return &sampler{informerd: i, client: http.Client{Timeout: 3 * time.Second}, counts: map[string]uint64{}, lists: map[string][]between{}, gone: map[string][]between{}, ends: map[string][]between{}, told: map[string]uint64{}}
}

// between are the moments of two samples, one after the other.
type between struct{ before, at time.Time }

// sample asks once; false if there was no answer.
func (s *sampler) sample(ctx context.Context) (checker.Sample, bool) {
	sample := checker.Sample{At: time.Now(), Tier: s.informerd.Name, States: map[string]checker.State{}}
	instance := s.informerd.Instance()
	body, _, err := s.get(ctx, "/v1/resources")
	if err != nil {
		return sample, false
	}
	var all struct {
		Items []struct {
			Name, State, Reason string
			Age                 *float64
			Counts              struct{ Relists, Compared, Expired uint64 }
		}
	}
	if json.Unmarshal(body, &all) != nil {
		return sample, false
	}
	s.mu.Lock()
	// What is sampled is of when it was asked for at the earliest, and of now at the latest.
	before, now := s.last, time.Now()
	s.last = sample.At
	if s.from != instance {
		// It counts anew. That it has counted as far as the process before is a change.
		s.restarts = append(s.restarts, between{before, now})
		clear(s.counts)
		clear(s.told)
		s.from = instance
	}
	for _, r := range all.Items {
		state := checker.State{State: r.State, Reason: r.Reason}
		if r.Age != nil {
			age := time.Duration(*r.Age * float64(time.Second))
			state.Age = &age
		}
		sample.States[r.Name] = state
		n := r.Counts.Relists + r.Counts.Compared
		was := s.counts[r.Name]
		s.counts[r.Name] = n // also of one that was not listed: it is there
		if n != was {
			s.lists[r.Name] = append(s.lists[r.Name], between{before, now})
		}
		if n := r.Counts.Expired; n != s.told[r.Name] {
			s.told[r.Name] = n
			if n > 0 {
				s.gone[r.Name] = append(s.gone[r.Name], between{before, now})
			}
		}
	}
	for name := range s.counts {
		if _, there := sample.States[name]; !there {
			// Gone with its definition: what its copy still held was told as deleted, at
			// the version that it was complete up to, as by a list of nothing.
			delete(s.counts, name)
			s.lists[name] = append(s.lists[name], between{before, now})
			s.ends[name] = append(s.ends[name], between{before, now})
		}
	}
	s.mu.Unlock()
	_, code, err := s.get(ctx, "/readyz")
	sample.Ready = code == http.StatusOK
	return sample, err == nil
}

func (s *sampler) get(ctx context.Context, path string) ([]byte, int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.informerd.URL+path, nil)
	if err != nil {
		return nil, 0, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return body, resp.StatusCode, err
}

// relisted says whether a resource may have been listed anew between two moments.
// What no sample shows is not known, so it may.
func (s *sampler) relisted(resource string, from, to time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last.Before(to) {
		return true
	}
	return about(s.lists[resource], from, to)
}

// ended says whether a resource may have been gone with its definition.
func (s *sampler) ended(resource string, at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last.Before(at) || about(s.ends[resource], at, at) || about(s.restarts, at, at)
}

// restarted says whether the process was another one between two moments.
func (s *sampler) restarted(from, to time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last.Before(to) || within(s.restarts, from, to)
}

// expired says whether a resource was answered 410 a moment before it was listed.
func (s *sampler) expired(resource string, at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return within(s.gone[resource], at.Add(-10*time.Second), at.Add(time.Second))
}

// about says whether one may be of what was told between two moments: it is sampled a
// moment before or after that.
func about(all []between, from, to time.Time) bool {
	return within(all, from.Add(-5*time.Second), to.Add(2*time.Second))
}

func within(all []between, from, to time.Time) bool {
	for _, b := range all {
		if b.at.After(from) && b.before.Before(to) {
			return true
		}
	}
	return false
}

// notLive says which resources are not live, and why.
func (s *sampler) notLive(ctx context.Context) []string {
	sample, ok := s.sample(ctx)
	if !ok {
		return []string{"no answer"}
	}
	var all []string
	for name, state := range sample.States {
		if state.State != "live" && state.State != "unwatched" {
			all = append(all, name+" "+state.State+": "+state.Reason)
		}
	}
	if len(sample.States) == 0 {
		all = append(all, "no resources")
	}
	return all
}

// one is a question for one object.
var one = regexp.MustCompile(`[?&]limit=1(&|$)`)

// auditor reads the audit log for lists of all objects that informerd asked for.
type auditor struct {
	file  string
	at    int64
	lists int // so far
	pages int // of metadata

	mu    sync.Mutex
	asked map[string][]time.Time // by resource: for lists and comparisons; guarded by mu
}

// compared is how long a list or a comparison may take until what it finds is told.
const compared = 30 * time.Second

// listed says whether a resource was asked for, such that it may have been told anew
// between two moments.
func (a *auditor) listed(resource string, from, to time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.asked[resource], func(at time.Time) bool {
		return at.After(from.Add(-compared)) && at.Before(to)
	})
}

func (a *auditor) ask(resource string, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asked == nil {
		a.asked = map[string][]time.Time{}
	}
	a.asked[resource] = append(a.asked[resource], at)
}

// read reads what is new and calls list for each list that was answered.
func (a *auditor) read(list func(at time.Time, resource, uri string)) error {
	f, err := os.Open(a.file)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() < a.at {
		a.at = 0 // the API server has begun another file
	}
	if _, err := f.Seek(a.at, io.SeekStart); err != nil {
		return err
	}
	lines := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil // the rest is being written
		}
		a.at += int64(len(line))
		if bytes.Contains(line, []byte(`"userAgent":"informerd/`)) {
			a.line(line, list)
		}
	}
}

func (a *auditor) line(line []byte, list func(at time.Time, resource, uri string)) {
	var e struct {
		Verb                     string
		RequestURI               string
		RequestReceivedTimestamp time.Time
		ObjectRef                struct{ Resource, APIGroup string }
		ResponseStatus           struct{ Code int }
	}
	if json.Unmarshal(line, &e) != nil || e.ResponseStatus.Code != http.StatusOK {
		return
	}
	streaming := e.Verb == "watch" && strings.Contains(e.RequestURI, "sendInitialEvents=true")
	if e.Verb != "list" && !streaming || e.ObjectRef.Resource == "" {
		return
	}
	resource := e.ObjectRef.Resource
	if e.ObjectRef.APIGroup != "" {
		resource += "." + e.ObjectRef.APIGroup
	}
	if strings.Contains(e.RequestURI, "limit=") {
		a.pages++ // metadata to compare with, or one object to know a version
		if !one.MatchString(e.RequestURI) {
			a.ask(resource, e.RequestReceivedTimestamp)
		}
		return
	}
	if streaming && (resource == "customresourcedefinitions.apiextensions.k8s.io" || resource == "apiservices.apiregistration.k8s.io") {
		return // discovery looks at them for itself; the copies are listed plainly
	}
	a.lists++
	a.ask(resource, e.RequestReceivedTimestamp)
	list(e.RequestReceivedTimestamp, resource, e.RequestURI)
}

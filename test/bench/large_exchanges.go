package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// exchange is something after which many objects of a resource are others, or are found otherwise,
// while the copy answers.
type exchange struct {
	name string
	// forget is which share of the pods changes while nobody is told, nil: none do.
	forget float64
	// of the configuration: what is to be in the place of what.
	old, new string
	// done reports whether it is over, but for what has to be prepared and saved afterwards.
	done func(ctx context.Context, l *large, i *informerd) (bool, error)
	peak float64 // anonymous bytes, the most meanwhile and until all is prepared and saved
}

const (
	phaseIndex   = "      phase: status.phase\n"
	setIndex     = "      set: metadata.generateName\n"
	droppedPaths = "drop: [metadata.managedFields]"
	alsoDropped  = "drop: [metadata.managedFields, status.hostIP]"
)

// largeExchanges are in the order in which they happen. After all of them the configuration is what
// it was.
func largeExchanges() []*exchange {
	return []*exchange{
		{name: "a relist, 0.1 % changed", forget: 0.001, done: relisted},
		{name: "a relist, 20 % changed", forget: 0.2, done: relisted},
		{name: "another index", old: phaseIndex, new: phaseIndex + setIndex, done: hasSetIndex(true)},
		{name: "an index less", old: setIndex, new: "", done: hasSetIndex(false)},
		{name: "another path that is dropped", old: droppedPaths, new: alsoDropped, done: hasHostIP(false)},
		{name: "a path that is dropped no more", old: alsoDropped, new: droppedPaths, done: hasHostIP(true)},
	}
}

// exchange has all of them happen, and asks every question again.
func (l *large) exchange(ctx context.Context, i *informerd) error {
	for _, e := range l.exchanges {
		logf("%s", e.name)
		if err := l.exchangeOne(ctx, i, e); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	logf("every question once more")
	for _, q := range l.questions {
		if _, err := l.askOne(ctx, i, q); err != nil {
			return fmt.Errorf("question %s, after the exchanges: %w", q.name, err)
		}
	}
	return nil
}

func (l *large) exchangeOne(ctx context.Context, i *informerd, e *exchange) error {
	if err := untilAtRest(ctx, i.pid()); err != nil {
		return err
	}
	stop := watchAnonymous(i.pid())
	defer stop()
	began := time.Now()
	if err := l.begin(e); err != nil {
		return err
	}
	if _, err := l.wait(ctx, i, e.name, func() (bool, error) { return e.done(ctx, l, i) }); err != nil {
		return err
	}
	_, err := l.wait(ctx, i, "saved", func() (bool, error) {
		saved, err := i.savedAt(ctx)
		return saved.After(began), err
	})
	if err != nil {
		return err
	}
	if _, err := settle(ctx, i.pid(), 0.1, 10*time.Minute); err != nil {
		return err
	}
	e.peak = stop()
	logf("%s: %s until all is saved, %.0f MB at most", e.name, time.Since(began).Round(time.Second), e.peak/1e6)
	return nil
}

// exchangeRest is after how long a process that does nothing has given back what it does not need.
const exchangeRest = 30 * time.Second

// untilAtRest waits until a process has given back what it does not need.
func untilAtRest(ctx context.Context, pid int) error {
	if _, err := settle(ctx, pid, 0.1, 10*time.Minute); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(exchangeRest):
		return nil
	}
}

// begin has the API server forget, or the configuration change.
func (l *large) begin(e *exchange) error {
	if e.forget > 0 {
		_, err := l.server.order("forget", strconv.Itoa(max(1, int(e.forget*float64(l.data.Pods)))))
		return err
	}
	text, err := os.ReadFile(l.config)
	if err != nil {
		return err
	}
	if !bytes.Contains(text, []byte(e.old)) {
		return fmt.Errorf("the configuration has no %q", e.old)
	}
	return os.WriteFile(l.config, bytes.Replace(text, []byte(e.old), []byte(e.new), 1), 0o600)
}

// relisted reports whether the copy is what the stand-in has now.
func relisted(ctx context.Context, l *large, i *informerd) (bool, error) {
	text, err := fetch(ctx, i.http, nil, l.server.first.Address+"/api/v1/pods?limit=1")
	if err != nil {
		return false, err
	}
	var list struct{ Metadata metav1.ListMeta }
	if err := json.Unmarshal(text, &list); err != nil {
		return false, err
	}
	s, err := i.status(ctx)
	return s.State == "live" && s.Objects == l.data.Pods && s.ResourceVersion == list.Metadata.ResourceVersion, err
}

// hasSetIndex reports whether there is the index, or is none.
func hasSetIndex(want bool) func(context.Context, *large, *informerd) (bool, error) {
	return func(ctx context.Context, _ *large, i *informerd) (bool, error) {
		_, err := fetch(ctx, i.http, nil, i.url+"/v1/resources/pods/indexes/set?limit=1")
		if err != nil && !strings.Contains(err.Error(), "404") {
			return false, err
		}
		return want == (err == nil), nil
	}
}

// hasHostIP reports whether pods have what one rule drops and the other does not, or have not.
func hasHostIP(want bool) func(context.Context, *large, *informerd) (bool, error) {
	return func(ctx context.Context, l *large, i *informerd) (bool, error) {
		text, err := fetch(ctx, i.http, nil, i.url+"/api/v1/namespaces/"+l.pods.Namespace(0)+"/pods/"+l.pods.Name(0))
		if err != nil {
			return false, err
		}
		s, err := i.status(ctx)
		return s.State == "live" && want == bytes.Contains(text, []byte(`"hostIP"`)), err
	}
}

// savedAt is when the snapshot was last saved.
func (i *informerd) savedAt(ctx context.Context) (time.Time, error) {
	text, err := fetch(ctx, i.http, nil, i.url+"/metrics")
	if err != nil {
		return time.Time{}, err
	}
	saved, err := metric(text, "informerd_snapshot_timestamp_seconds")
	return time.UnixMilli(int64(saved * 1000)), err
}

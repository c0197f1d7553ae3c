package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// largeEventsFor is how long changes are made and watched in each round, while the first save is under
// way and when nothing else is.
const largeEventsFor = 10 * time.Second

// eventsBesideSaving measures events in some rounds, as long as the first save, graph and search are
// under way.
func (l *large) eventsBesideSaving(ctx context.Context, i *informerd) error {
	for round := range l.rounds {
		delays, err := l.events(ctx, i)
		if err != nil {
			return err
		}
		prepared, err := l.isPrepared(ctx, i)
		if err != nil {
			return err
		}
		if l.savedSooner = prepared && round == 0; !prepared || l.savedSooner {
			l.saving = append(l.saving, delays...)
		}
		if prepared {
			break
		}
	}
	return nil
}

// events measures how many seconds after a bare watch on the stand-in each change is seen on
// informerd's watch. The stand-in sends all of them: one that does not come is an error.
func (l *large) events(ctx context.Context, i *informerd) (delays []float64, err error) {
	s, err := i.status(ctx)
	if err != nil {
		return nil, err
	}
	path := "/api/v1/pods?watch=true&resourceVersion=" + s.ResourceVersion
	streaming := *i.http
	streaming.Timeout = 0
	bare, err := followBy(ctx, http.DefaultClient, l.server.first.Address+path, versionOfLine, nil)
	if err != nil {
		return nil, err
	}
	defer bare.stop()
	ours, err := followBy(ctx, &streaming, i.url+path, versionOfLine, nil)
	if err != nil {
		return nil, err
	}
	defer ours.stop()
	if _, err := l.server.order("churn", strconv.Itoa(eventRate)); err != nil {
		return nil, err
	}
	time.Sleep(largeEventsFor)
	if _, err := l.server.order("churn", "0"); err != nil {
		return nil, err
	}
	time.Sleep(time.Second) // the last ones are on their way
	n := bare.count()
	if least := int(0.9 * eventRate * largeEventsFor.Seconds()); n < least {
		return nil, fmt.Errorf("%d changes were made, and not %d", n, least)
	}
	if err := ours.await(ctx, n); err != nil {
		return nil, fmt.Errorf("the watch of informerd: %w", err)
	}
	if delays = behind(ours, bare); len(delays) != n {
		return nil, errors.Join(fmt.Errorf("informerd showed %d changes, and there were %d", len(delays), n), ours.err)
	}
	logf("%d events after a bare watch, p99 %.1f ms", n, quantile(delays, 0.99)*1e3)
	return delays, nil
}

// versionOfLine is the resourceVersion of the object that an event shows, by which the changes
// of the stand-in are numbered.
func versionOfLine(line []byte) (int, bool) {
	text, ok := stringAfter(line, `"resourceVersion":"`)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// loadWorkers is how many queries are under way at a time.
const loadWorkers = 4

// load is what runLoad measured.
type load struct {
	requests int
	seconds  float64
	took     []float64 // seconds of each request
}

func (l load) perSecond() float64 { return float64(l.requests) / l.seconds }

// runLoad asks for one app after the other, several at a time, for as long as
// duration. do may use buf for its answer and returns it.
func runLoad(ctx context.Context, apps []string, duration time.Duration, do func(ctx context.Context, buf []byte, app string) ([]byte, error)) (load, error) {
	return runLoadOf(ctx, loadWorkers, apps, duration, do)
}

// runLoadOf is runLoad with a number of questions under way at a time.
func runLoadOf(ctx context.Context, workers int, apps []string, duration time.Duration, do func(ctx context.Context, buf []byte, app string) ([]byte, error)) (load, error) {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	took := make([][]float64, workers)
	start := time.Now()
	for w := range workers {
		g.Go(func() error {
			var buf []byte
			for begin := time.Now(); begin.Sub(start) < duration; {
				var err error
				app := apps[int(next.Add(1)-1)%len(apps)]
				if buf, err = do(ctx, buf, app); err != nil {
					return fmt.Errorf("query app %s: %w", app, err)
				}
				now := time.Now()
				took[w] = append(took[w], now.Sub(begin).Seconds())
				begin = now
			}
			return nil
		})
	}
	err := g.Wait()
	l := load{seconds: time.Since(start).Seconds()}
	for _, t := range took {
		l.took = append(l.took, t...)
	}
	l.requests = len(l.took)
	return l, err
}

// fetch reads the answer to a GET into buf.
func fetch(ctx context.Context, client *http.Client, buf []byte, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return buf, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return buf, err
	}
	defer resp.Body.Close()
	if buf, err = appendAll(buf[:0], resp.Body); err != nil {
		return buf, err
	}
	if resp.StatusCode != http.StatusOK {
		return buf, fmt.Errorf("get %s: %s: %.300s", url, resp.Status, buf)
	}
	return buf, nil
}

// appendAll is io.ReadAll into a buffer that is used again.
func appendAll(buf []byte, r io.Reader) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
}

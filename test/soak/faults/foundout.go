package faults

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// foundOutLimit is how long foundOut waits at most.
const foundOutLimit = time.Minute

// foundOut waits until the first informerd has judged the API servers that answer now:
// until all it holds of them was proven current since. Nobody writes meanwhile.
func (e *Env) foundOut(ctx context.Context) {
	began := time.Now()
	for time.Since(began) < foundOutLimit && ctx.Err() == nil {
		// Several times, as far as a copy that was proven just before may be told of late.
		wait(ctx, time.Second)
		if time.Since(began) > 3*time.Second && e.provenSince(ctx, began) {
			return
		}
	}
}

// provenSince reports whether all that is held is live by a proof since a moment.
func (e *Env) provenSince(ctx context.Context, began time.Time) bool {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	asked := time.Now()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.Rig.First.URL+"/v1/resources", nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	var all struct {
		Items []struct {
			Name, State string
			Age         *float64
		}
	}
	if answer.StatusCode != http.StatusOK || json.NewDecoder(answer.Body).Decode(&all) != nil {
		return false
	}
	for _, r := range all.Items {
		if r.State == "unwatched" || strings.HasSuffix(r.Name, AggregatedGroup) {
			continue
		}
		if r.State != "live" || r.Age == nil || asked.Add(-time.Duration(*r.Age*float64(time.Second))).Before(began) {
			return false
		}
	}
	return len(all.Items) > 0
}

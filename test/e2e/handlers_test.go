package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/informerd/informerd/test/e2e/harness"
)

// delivered is what a receiver was told of objects.
type delivered struct {
	mu       sync.Mutex        // guards all below
	last     map[string]string // by key: the resourceVersion, "" of an end
	taken    map[string]int    // by the id of a delivery: how often it was taken
	repeated int
	unknown  []string // ids of ends that came without the last state
}

func newDelivered() *delivered {
	return &delivered{last: map[string]string{}, taken: map[string]int{}}
}

// item is a delivery as claims and webhooks have it.
type item struct {
	Token, ID, Transition, Namespace, Name, ResourceVersion string

	Object json.RawMessage
}

func (d *delivered) take(i item) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.taken[i.ID]++; d.taken[i.ID] > 1 {
		d.repeated++
	}
	key := i.Namespace + "/" + i.Name
	if d.last[key] = i.ResourceVersion; i.Transition == "leaves" {
		d.last[key] = ""
		if len(i.Object) == 0 || string(i.Object) == "null" {
			d.unknown = append(d.unknown, fmt.Sprintf("%s of %s at %s", i.ID, key, time.Now().Format("15:04:05.000")))
		}
	}
}

// differs says what a receiver was told last that is not so, and what it was not told.
func (d *delivered) differs(truth map[string]harness.Object) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var wrong []string
	for key, o := range truth {
		if told := d.last[key]; told != o.ResourceVersion() {
			wrong = append(wrong, fmt.Sprintf("%s is at %s, told %q", key, o.ResourceVersion(), told))
		}
	}
	for key, told := range d.last {
		if _, there := truth[key]; !there && told != "" {
			wrong = append(wrong, fmt.Sprintf("%s is gone, told %q", key, told))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	return fmt.Errorf("%d keys are wrong:\n%s", len(wrong), strings.Join(wrong[:min(len(wrong), 10)], "\n"))
}

// claimer claims, pretends to work, and acknowledges, until ctx ends; informerd may be away.
type claimer struct {
	i       *harness.Informerd
	handler string
	told    *delivered

	mu     sync.Mutex // guards unsure
	unsure int        // acknowledgements that were not answered
}

func (c *claimer) run(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		var got struct{ Items []item }
		if err := c.post(ctx, "claim?max=5&lease=30s&wait=2s", nil, &got); err != nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		for _, it := range got.Items {
			if r.IntN(10) == 0 {
				_ = c.post(ctx, "nack?after=10ms&reason=by+chance", map[string]any{"tokens": []string{it.Token}}, nil)
				continue
			}
			c.told.take(it)
			if err := c.post(ctx, "ack", map[string]any{"tokens": []string{it.Token}}, nil); err != nil {
				c.mu.Lock()
				c.unsure++
				c.mu.Unlock()
			}
		}
	}
}

func (c *claimer) post(ctx context.Context, what string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.i.URL+"/v1/handlers/"+c.handler+"/"+what, nil)
	if err != nil {
		return err
	}
	if body != nil {
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, answer)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer, into)
}

// receiver is a webhook. Now and then it refuses.
func receiver(t *testing.T, told *delivered, r *rand.Rand) *httptest.Server {
	var mu sync.Mutex // guards r
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		refuse := r.IntN(10) == 0
		mu.Unlock()
		var e struct {
			ID   string
			Data item
		}
		body, err := io.ReadAll(req.Body)
		if err != nil { // it was killed amid the request
			return
		}
		if err := json.Unmarshal(body, &e); err != nil || e.ID == "" {
			t.Errorf("received %v, %s", err, body)
		}
		if refuse {
			http.Error(w, "by chance", http.StatusInternalServerError)
			return
		}
		e.Data.ID = e.ID
		told.take(e.Data)
	}))
	t.Cleanup(s.Close)
	return s
}

// handlerConcurrency is how many deliveries of the webhook are under way at once.
const handlerConcurrency = 4

// TestHandlersKilled: killed at random moments under churn, informerd delivers the last state
// of every key, ends included, to a webhook and to workers, and delivers again what was under
// way at a kill and nothing else. INFORMERD_KILLS says how often, INFORMERD_SEED when.
func TestHandlersKilled(t *testing.T) {
	kills, seed := number(t, "INFORMERD_KILLS", 6), number(t, "INFORMERD_SEED", int(rand.Uint32()))
	inTurn(t, &smallLane)
	c := smallCluster(t)
	t.Logf("seed %d", seed)
	random := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(uint64(seed), n)) }
	churn := newChurner(t, c, builtinKinds()[:1], "handled-a", "handled-b")
	// What is as it was when it was told last is not told again, and has another version.
	churn.pause, churn.seed, churn.unlike = 4*time.Millisecond, uint64(seed), true
	hooked, claimed := newDelivered(), newDelivered()
	hook := receiver(t, hooked, random(1))
	common := ", resources: [configmaps], namespaces: [\"handled-*\"], as: informerd, from: beginning, retry: {base: 10ms, max: 100ms, attempts: 1000}"
	i := harness.StartInformerd(t, harness.Options{
		Kubeconfig: c.Kubeconfig("admin"), Snapshot: filepath.Join(t.TempDir(), "informerd.db"),
		Handlers: fmt.Sprintf("- {name: hooked%s, concurrency: %d, webhook: {url: %q, allowPrivate: [127.0.0.1]}}\n- {name: claimed%s}\n",
			common, handlerConcurrency, hook.URL, common),
	})
	i.WaitLive(t, syncTime, "configmaps")
	waitSaved(t, i) // before that, a kill loses the last states of what was delivered
	ctx, stopWorkers := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	defer workers.Wait()
	defer stopWorkers()
	worker := &claimer{i: i, handler: "claimed", told: claimed}
	for n := range 3 {
		workers.Go(func() { worker.run(ctx, random(uint64(10+n))) })
	}

	stop := churn.start(t.Context(), 4)
	r := random(2)
	for n := range kills {
		if n%10 == 9 { // so that it saves something on a machine that has much else to do
			i.WaitLive(t, syncTime, "configmaps")
		}
		time.Sleep(time.Duration(50+r.IntN(1500)) * time.Millisecond)
		i.Kill()
		time.Sleep(time.Duration(r.IntN(500)) * time.Millisecond)
		i.Start()
	}
	stop()
	i.WaitLive(t, syncTime, "configmaps")
	truth := selected(t, c, configMaps, func(o harness.Object) bool { return strings.HasPrefix(o.Namespace(), "handled-") })
	for name, d := range map[string]*delivered{"webhook": hooked, "claims": claimed} {
		harness.Eventually(t, 2*time.Minute, "every last state at the "+name, func() error {
			now, err := truth()
			if err = errors.Join(err, d.differs(now)); err != nil {
				status, _ := i.Get("/v1/handlers")
				return fmt.Errorf("%w\n%s", err, status.Body)
			}
			return nil
		})
	}
	churn.check(t)
	worker.mu.Lock()
	unsure := worker.unsure
	worker.mu.Unlock()
	t.Logf("%d kills; webhook: %d deliveries, %d repeated; claims: %d deliveries, %d repeated, %d acknowledgements unanswered",
		kills, len(hooked.taken), hooked.repeated, len(claimed.taken), claimed.repeated, unsure)
	if most := kills * handlerConcurrency; hooked.repeated > most {
		t.Errorf("%d deliveries of the webhook were repeated, %d were under way at kills at most", hooked.repeated, most)
	}
	if claimed.repeated > unsure {
		t.Errorf("%d claims were repeated, %d acknowledgements were not answered", claimed.repeated, unsure)
	}
	if unknown := slices.Concat(hooked.unknown, claimed.unknown); len(unknown) > 0 {
		t.Errorf("%d ends came without the last state:\n%s", len(unknown), strings.Join(unknown, "\n"))
	}
	before := len(hooked.taken) + len(claimed.taken)
	i.Stop()
	i.Start()
	i.WaitLive(t, syncTime, "configmaps")
	time.Sleep(time.Second)
	hooked.mu.Lock()
	claimed.mu.Lock()
	defer hooked.mu.Unlock()
	defer claimed.mu.Unlock()
	if after := len(hooked.taken) + len(claimed.taken); after != before || len(hooked.last) == 0 {
		t.Errorf("a restart after which nothing had changed delivered %d", after-before)
	}
}

func number(t *testing.T, variable string, standard int) int {
	text := os.Getenv(variable)
	if text == "" {
		return standard
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

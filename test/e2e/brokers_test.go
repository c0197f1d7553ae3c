package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/test/e2e/harness"
	"github.com/informerd/informerd/test/sinks"
)

// TestBrokers: with brokers that are not there at the start, that go while objects change, and
// with a kill, the last state of every key arrives at NATS and at Kafka, ends included.
func TestBrokers(t *testing.T) {
	inTurn(t, &smallLane)
	c := smallCluster(t)
	churn := newChurner(t, c, builtinKinds()[:1], "brokered-a")
	churn.pause, churn.unlike = 4*time.Millisecond, true
	brokers := map[string]sinks.Broker{"nats": sinks.NewNATS(t), "kafka": sinks.NewKafka(t)}
	const common = "resources: [configmaps], namespaces: [\"brokered-*\"], as: informerd, from: beginning, retry: {base: 10ms, max: 100ms}"
	i := harness.StartInformerd(t, harness.Options{
		Kubeconfig: c.Kubeconfig("admin"), Snapshot: filepath.Join(t.TempDir(), "informerd.db"),
		Handlers: fmt.Sprintf("- {name: nats, %s, nats: {servers: [%q]}}\n- {name: kafka, %s, kafka: {brokers: [%q], topic: %s}}\n",
			common, brokers["nats"].Address(), common, brokers["kafka"].Address(), sinks.Topic),
	})
	i.WaitLive(t, syncTime, "configmaps")
	stop := churn.start(t.Context(), 2)
	pause := func() { time.Sleep(300 * time.Millisecond) }
	pause()
	for _, b := range brokers {
		b.Start()
	}
	pause()
	for _, b := range brokers {
		b.Stop()
	}
	pause()
	i.Kill()
	i.Start()
	for _, b := range brokers {
		b.Start()
	}
	pause()
	stop()
	truth := selected(t, c, configMaps, func(o harness.Object) bool { return strings.HasPrefix(o.Namespace(), "brokered-") })
	for name, b := range brokers {
		harness.Eventually(t, time.Minute, "every last state at "+name, func() error {
			now, err := truth()
			if err = errors.Join(err, ofMessages(t, b.Messages()).differs(now)); err != nil {
				status, _ := i.Get("/v1/handlers/" + name)
				return fmt.Errorf("%w\n%s", err, status.Body)
			}
			return nil
		})
	}
	churn.check(t)
}

// ofMessages is what messages with CloudEvents say.
func ofMessages(t *testing.T, messages [][]byte) *delivered {
	t.Helper()
	d := newDelivered()
	for _, text := range messages {
		var e struct {
			ID   string
			Data item
		}
		if err := json.Unmarshal(text, &e); err != nil || e.ID == "" {
			t.Fatalf("%v: %s", err, text)
		}
		e.Data.ID = e.ID
		d.take(e.Data)
	}
	return d
}

package harness

import (
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/cert"

	"github.com/informerd/informerd/test/child"
)

// Options of an informerd. Every zero value but Kubeconfig is useful.
type Options struct {
	// Kubeconfig is the file it connects with.
	Kubeconfig string
	// Snapshot is its snapshot file; empty: none.
	Snapshot string
	// Postgres is the URL of the database that has its snapshot in the place of a file.
	Postgres string
	// Rules is the resources: section of its config.yaml; empty: the built-in
	// rules.
	Rules string
	// Verify is how often copies are verified; zero: the default, an hour.
	Verify time.Duration
	// Kubernetes is the kubernetes: section of its config.yaml, in one line;
	// empty: the defaults.
	Kubernetes string
	// TLS serves HTTPS, with a certificate that CAFile has.
	TLS bool
	// Twin is one whose certificate it has, as pods with the same Secret; nil: its own.
	Twin *Informerd
	// Access are the sections authentication and authorization of its config.yaml;
	// empty: everybody sees everything.
	Access string
	// Handlers is the handlers: section of its config.yaml; empty: none.
	Handlers string
	// Lease makes it one of several replicas, which agree by it on who leads: NAMESPACE/NAME.
	Lease string
	// ReplicaURL is where the others reach it; empty: its own address.
	ReplicaURL string
	// Address is what it listens on; empty: a free port of loopback.
	Address string
	// Plain is the program without the race detector, for what counts work.
	Plain bool
	// MayRace turns the failure on a data race off.
	MayRace bool
}

// Informerd is one informerd, which may be stopped and started again.
type Informerd struct {
	// URL is where it serves.
	URL string

	tb      testing.TB
	opts    Options
	dir     string
	program string
	client  *http.Client
	process *child.Process
	runs    int
}

var instances atomic.Int64

// StartInformerd starts an informerd that serves when it returns; it may have no
// data yet. It is stopped at the end of the test. A data race that it reported,
// or a death of its own, fails the test.
func StartInformerd(tb testing.TB, opts Options) *Informerd {
	tb.Helper()
	i := &Informerd{
		tb: tb, opts: opts, dir: tb.TempDir(),
		client: &http.Client{Timeout: 90 * time.Second, Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16}},
	}
	var err error
	if i.program, err = informerdProgram(opts.Plain); err != nil {
		tb.Fatal(err)
	}
	if i.opts.Address == "" {
		// Chosen here rather than by port 0, so that a restart keeps it and
		// clients can come back.
		i.opts.Address = FreeAddress(tb)
	}
	if opts.TLS {
		i.makeCertificate()
	}
	i.WriteRules(opts.Rules)
	tb.Cleanup(i.cleanup)
	i.Start()
	return i
}

// informerdProgram is the program under test: built with the race detector
// unless it is to be plain, or INFORMERD_BIN names another.
func informerdProgram(plain bool) (string, error) {
	dir, err := Root()
	if err != nil {
		return "", err
	}
	name, target := "informerd-race", "race"
	if plain {
		name, target = "informerd", "build"
	}
	path := cmp.Or(os.Getenv("INFORMERD_BIN"), filepath.Join(dir, "bin", name))
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: run make %s", err, target)
	}
	return path, nil
}

// FreeAddress is one of loopback that nobody listens on.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// ConfigFile is its config.yaml.
func (i *Informerd) ConfigFile() string { return filepath.Join(i.dir, "config.yaml") }

// CAFile has the certificate of one that serves HTTPS.
func (i *Informerd) CAFile() string { return filepath.Join(i.dir, "tls.crt") }

func (i *Informerd) keyFile() string { return filepath.Join(i.dir, "tls.key") }

// makeCertificate makes its certificate and has its client trust it.
func (i *Informerd) makeCertificate() {
	i.tb.Helper()
	pem, key, err := i.certificate()
	if err != nil {
		i.tb.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(i.CAFile(), pem, 0o600), os.WriteFile(i.keyFile(), key, 0o600)); err != nil {
		i.tb.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	i.client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots}
}

// certificate makes a certificate, or reads that of the twin.
func (i *Informerd) certificate() (pem, key []byte, err error) {
	twin := i.opts.Twin
	if twin == nil {
		return cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	}
	if pem, err = os.ReadFile(twin.CAFile()); err != nil {
		return nil, nil, err
	}
	key, err = os.ReadFile(twin.keyFile())
	return pem, key, err
}

// LogFile is where it prints to, over all its runs.
func (i *Informerd) LogFile() string { return filepath.Join(i.dir, "informerd.log") }

// Snapshot is its snapshot file.
func (i *Informerd) Snapshot() string { return i.opts.Snapshot }

// WriteRules writes its config.yaml anew, with other rules.
func (i *Informerd) WriteRules(rules string) {
	i.tb.Helper()
	level := os.Getenv("INFORMERD_LOG_LEVEL")
	if level == "" {
		level = "info"
	}
	place := fmt.Sprintf("path: %q", i.opts.Snapshot)
	if i.opts.Postgres != "" {
		place = fmt.Sprintf("postgres: {url: %q}", i.opts.Postgres)
	}
	config := fmt.Sprintf("listen: %s\nclusters:\n- name: default\n  kubeconfig: %q\nsnapshot:\n  %s\n  interval: 200ms\nlog:\n  level: %s\n",
		i.opts.Address, i.opts.Kubeconfig, place, level)
	if i.opts.TLS {
		config += fmt.Sprintf("tls: {certFile: %q, keyFile: %q}\n", i.CAFile(), i.keyFile())
	}
	if i.opts.Verify > 0 {
		config += fmt.Sprintf("verify: {interval: %v}\n", i.opts.Verify)
	}
	if i.opts.Kubernetes != "" {
		config += "kubernetes: {" + i.opts.Kubernetes + "}\n"
	}
	config += i.opts.Access
	if i.opts.Lease != "" {
		ca := ""
		if i.opts.TLS {
			ca = i.CAFile()
		}
		config += fmt.Sprintf("replicas: {url: %q, lease: %q, kubeconfig: %q, caFile: %q}\n", cmp.Or(i.opts.ReplicaURL, i.selfURL()), i.opts.Lease, i.opts.Kubeconfig, ca)
	}
	if i.opts.Handlers != "" {
		config += "handlers:\n" + strings.TrimPrefix(i.opts.Handlers, "\n")
	}
	if rules != "" {
		config += "resources:\n" + strings.TrimPrefix(rules, "\n")
	}
	i.WriteConfig(config)
}

// selfURL is where it will serve.
func (i *Informerd) selfURL() string {
	if i.opts.TLS {
		return "https://" + i.opts.Address
	}
	return "http://" + i.opts.Address
}

// At is the same informerd, asked at another URL, such as one behind which others are, too.
func (i *Informerd) At(url string) *Informerd {
	at := *i
	at.URL = url
	return &at
}

// WriteConfig replaces its config.yaml in one step, as editors and ConfigMap
// mounts do.
func (i *Informerd) WriteConfig(text string) {
	i.tb.Helper()
	temporary := i.ConfigFile() + ".new"
	if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
		i.tb.Fatal(err)
	}
	if err := os.Rename(temporary, i.ConfigFile()); err != nil {
		i.tb.Fatal(err)
	}
}

// Start starts it, after Stop or Kill again, at the same address.
func (i *Informerd) Start() {
	i.tb.Helper()
	i.runs++
	name := fmt.Sprintf("informerd %d.%d", instances.Add(1), i.runs)
	before := len(i.Log())
	cmd := exec.Command(i.program, "serve", "--config", i.ConfigFile())
	cmd.Dir = i.dir
	cmd.Env = append(os.Environ(), "KUBECONFIG=", "HOME="+i.dir, "GORACE=halt_on_error=0 exitcode=66")
	var err error
	if i.process, err = child.Start(name, cmd, i.LogFile(), syscall.SIGKILL); err != nil {
		i.tb.Fatal(err)
	}
	serving := regexp.MustCompile(`url=(https?://127\.0\.0\.1:\d+)`)
	err = Poll(time.Minute, func() error {
		if !i.process.Running() {
			return nil
		}
		if m := serving.FindStringSubmatch(i.Log()[before:]); m != nil {
			i.URL = m[1]
			return nil
		}
		return errors.New("it does not say where it serves")
	})
	if err != nil || !i.process.Running() {
		i.tb.Fatalf("%s did not start: %v %v", name, err, i.process.Err())
	}
}

// Stop ends it as an operator does, with SIGTERM, and fails the test if it does
// not end well.
func (i *Informerd) Stop() {
	i.tb.Helper()
	if err := i.process.Stop(30 * time.Second); err != nil {
		i.tb.Fatal(err)
	}
	if i.process.Err() != nil {
		i.tb.Errorf("informerd ended with %v after SIGTERM", i.process.Err())
	}
}

// Kill ends it with SIGKILL.
func (i *Informerd) Kill() {
	i.tb.Helper()
	if !i.process.Running() {
		i.tb.Fatalf("informerd died before it was killed: %v", i.process.Err())
	}
	i.process.Kill()
}

// Signal sends it a signal.
func (i *Informerd) Signal(sig syscall.Signal) {
	i.tb.Helper()
	if err := i.process.Signal(sig); err != nil {
		i.tb.Fatalf("signal informerd: %v", err)
	}
}

// PID is its process.
func (i *Informerd) PID() int { return i.process.PID() }

// Running says whether it has not ended.
func (i *Informerd) Running() bool { return i.process.Running() }

// Log is everything it has printed in all its runs.
func (i *Informerd) Log() string {
	data, err := os.ReadFile(i.LogFile())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		i.tb.Fatal(err)
	}
	return string(data)
}

// LogLines are the lines it has printed that contain all of the texts.
func (i *Informerd) LogLines(texts ...string) []string {
	var lines []string
next:
	for line := range strings.Lines(i.Log()) {
		for _, text := range texts {
			if !strings.Contains(line, text) {
				continue next
			}
		}
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	return lines
}

func (i *Informerd) cleanup() {
	if i.process == nil {
		return
	}
	if i.process.Running() {
		if err := i.process.Stop(30 * time.Second); err != nil {
			i.tb.Error(err)
		}
	}
	log := i.Log()
	if at := strings.Index(log, "WARNING: DATA RACE"); at >= 0 && !i.opts.MayRace {
		i.tb.Errorf("informerd has a data race:\n%s", head(log[at:], 60))
	}
	for _, bad := range []string{"panic: ", "fatal error: "} {
		if at := strings.Index(log, bad); at >= 0 {
			i.tb.Errorf("informerd panicked:\n%s", head(log[at:], 40))
		}
	}
	if i.tb.Failed() {
		i.tb.Logf("%s; the end of its log:\n%s", i.keepLog(log), tail(log, 80))
	}
}

// keepLog copies the log of a failed test to where it outlives it.
func (i *Informerd) keepLog(log string) string {
	dir, err := Root()
	if err != nil {
		return err.Error()
	}
	dir = filepath.Join(dir, "test", "results")
	name := strings.NewReplacer("/", "_", " ", "_").Replace(i.tb.Name()) + fmt.Sprintf("-%d.log", i.PID())
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, name), []byte(log), 0o644)); err != nil {
		return err.Error()
	}
	return "whole log: test/results/" + name
}

func head(s string, lines int) string {
	all := strings.SplitAfterN(s, "\n", lines+1)
	return strings.Join(all[:min(len(all), lines)], "")
}

// Answer is an HTTP answer.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Get asks; headers are pairs of names and values. Errors are those of the
// connection.
func (i *Informerd) Get(path string, headers ...string) (*Answer, error) {
	return i.Do(http.MethodGet, path, headers...)
}

// Do is Get with another method.
func (i *Informerd) Do(method, path string, headers ...string) (*Answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, i.URL+path, nil)
	if err != nil {
		return nil, err
	}
	for n := 0; n+1 < len(headers); n += 2 {
		req.Header.Set(headers[n], headers[n+1])
	}
	resp, err := i.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var body io.Reader = resp.Body
	if resp.Header.Get("Content-Encoding") == "gzip" {
		if body, err = gzip.NewReader(resp.Body); err != nil {
			return nil, err
		}
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return &Answer{resp.StatusCode, resp.Header, data}, nil
}

// Read asks for JSON, which must be there, and decodes it into v.
func (i *Informerd) Read(path string, v any) error {
	a, err := i.Get(path)
	if err != nil {
		return err
	}
	if a.Status != http.StatusOK {
		return fmt.Errorf("GET %s: %d: %s", path, a.Status, head(string(a.Body), 5))
	}
	return decode(a.Body, v)
}

// MustGet is Get, whose errors fail the test.
func (i *Informerd) MustGet(tb testing.TB, path string, headers ...string) *Answer {
	tb.Helper()
	a, err := i.Get(path, headers...)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

// Resource is an item of /v1/resources.
type Resource struct {
	Group           string    `json:"group"`
	Version         string    `json:"version"`
	Resource        string    `json:"resource"`
	Name            string    `json:"name"`
	Kind            string    `json:"kind"`
	Namespaced      bool      `json:"namespaced"`
	State           string    `json:"state"`
	Reason          string    `json:"reason"`
	Since           time.Time `json:"since"`
	Objects         int       `json:"objects"`
	ResourceVersion string    `json:"resourceVersion"`
	Age             *float64  `json:"age"` // in seconds; nil if it is not known
	Indexes         []string  `json:"indexes"`
	Counts          struct {
		Events    uint64 `json:"events"`
		Relists   uint64 `json:"relists"`
		Compared  uint64 `json:"compared"`
		Fetched   uint64 `json:"fetched"`
		Expired   uint64 `json:"expired"`
		Restarts  uint64 `json:"restarts"`
		Undecoded uint64 `json:"undecoded"`
		Mended    uint64 `json:"mended"`
	} `json:"counts"`
	Snapshot struct {
		Drops      uint64 `json:"drops"`
		DropReason string `json:"dropReason"`
	} `json:"snapshot"`
}

// GVR is how Kubernetes' clients name it.
func (r Resource) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
}

// Resources are what /v1/resources says, by name.
func (i *Informerd) Resources() (map[string]Resource, error) {
	var list struct{ Items []Resource }
	if err := i.Read("/v1/resources", &list); err != nil {
		return nil, err
	}
	all := map[string]Resource{}
	for _, r := range list.Items {
		if twice, ok := all[r.Name]; ok {
			return nil, fmt.Errorf("resource %s is there in two versions: %s and %s", r.Name, twice.Version, r.Version)
		}
		all[r.Name] = r
	}
	return all, nil
}

// Resource is one item of /v1/resources.
func (i *Informerd) Resource(tb testing.TB, name string) Resource {
	tb.Helper()
	var r Resource
	if err := i.Read("/v1/resources/"+name, &r); err != nil {
		tb.Fatal(err)
	}
	return r
}

// States counts the watched resources by state.
func (i *Informerd) States() (map[string]int, error) {
	all, err := i.Resources()
	if err != nil {
		return nil, err
	}
	states := map[string]int{}
	for _, r := range all {
		if r.State != "unwatched" {
			states[r.State]++
		}
	}
	return states, nil
}

// WaitLive waits until everything that is watched is live, and the named
// resources are among it.
func (i *Informerd) WaitLive(tb testing.TB, timeout time.Duration, names ...string) {
	tb.Helper()
	Eventually(tb, timeout, "all resources live", func() error { return i.live(names) })
}

func (i *Informerd) live(names []string) error {
	if !i.Running() {
		return fmt.Errorf("informerd ended: %v", i.process.Err())
	}
	all, err := i.Resources()
	if err != nil {
		return err
	}
	watched := 0
	for _, name := range names {
		if r := all[name]; r.State != "live" {
			return fmt.Errorf("%s is %q: %s", name, r.State, r.Reason)
		}
	}
	for name, r := range all {
		if r.State == "unwatched" {
			continue
		}
		watched++
		if r.State != "live" {
			return fmt.Errorf("%s is %s: %s", name, r.State, r.Reason)
		}
	}
	if watched == 0 {
		return errors.New("nothing is watched")
	}
	return nil
}

func decode(data []byte, v any) error {
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("decode %q: %w", head(string(data), 3), err)
	}
	return nil
}

// ForgetSnapshot deletes its snapshot file, while it does not run.
func (i *Informerd) ForgetSnapshot(tb testing.TB) {
	tb.Helper()
	if err := os.Remove(i.opts.Snapshot); err != nil {
		tb.Fatal(err)
	}
}

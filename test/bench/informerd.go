package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// informerdAgent is how the user agent of informerd begins.
const informerdAgent = "informerd/"

// config is the shipped configuration as far as it is about pods.
const informerdConfig = `resources:
  - match: [pods]
    indexes:
      node: spec.nodeName
      phase: status.phase
      image: "spec.containers[*].image"
    drop: [metadata.managedFields]
`

func writeConfig(dir string) (string, error) {
	file := filepath.Join(dir, "config.yaml")
	return file, os.WriteFile(file, []byte(informerdConfig), 0o600)
}

// informerd is the real program while it runs.
type informerd struct {
	*process
	url  string
	http *http.Client
	peak *peak
}

// startInformerd starts informerd with a snapshot file, or none if it is empty.
// It returns at once. stop or kill it.
func (b *bench) startInformerd(ctx context.Context, snapshot string) (*informerd, error) {
	return b.startConfigured(ctx, b.config, snapshot)
}

// startConfigured is startInformerd with another configuration.
func (b *bench) startConfigured(ctx context.Context, config, snapshot string) (*informerd, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	args := []string{"serve", "--config", config, "--listen", address, "--snapshot", snapshot, "--log-level", "warn"}
	if kubeconfig := b.cluster.info.Kubeconfig; kubeconfig != "" { // otherwise the configuration has the clusters
		args = append(args, "--kubeconfig", kubeconfig)
	}
	cmd := exec.Command(b.informerd, args...)
	i := &informerd{
		url:  "http://" + address,
		peak: b.peak,
		http: &http.Client{Timeout: time.Minute, Transport: &http.Transport{
			DisableCompression: true, MaxIdleConnsPerHost: 2 * loadWorkers,
		}},
	}
	i.process, err = startProcess(ctx, "informerd", cmd)
	return i, err
}

// stop ends informerd in order, and keeps how much memory it needed.
func (i *informerd) stop() error {
	if err := i.peak.note(i.pid()); err != nil {
		return errors.Join(err, i.died())
	}
	return i.process.stop()
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// podsStatus is what /v1/resources/pods says.
type podsStatus struct {
	State           string `json:"state"`
	Objects         int    `json:"objects"`
	Bytes           int64  `json:"bytes"`
	RawBytes        int64  `json:"rawBytes"`
	ResourceVersion string `json:"resourceVersion"`
}

func (i *informerd) status(ctx context.Context) (podsStatus, error) {
	var s podsStatus
	err := i.get(ctx, "/v1/resources/pods", &s)
	return s, err
}

func (i *informerd) get(ctx context.Context, path string, into any) error {
	data, err := fetch(ctx, i.http, nil, i.url+path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// waitUntil calls done every step until it is true, and returns the time since
// informerd was started. Errors of done mean not yet; the last one is reported
// if it never comes true.
func (i *informerd) waitUntil(ctx context.Context, step, atMost time.Duration, what string, done func() (bool, error)) (time.Duration, error) {
	deadline := time.Now().Add(atMost)
	for {
		ok, err := done()
		if ok && err == nil {
			return time.Since(i.started), nil
		}
		if died := i.died(); died != nil {
			return 0, died
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if time.Now().After(deadline) {
			return 0, fmt.Errorf("informerd was not %s after %s: %w\n%s", what, atMost, errors.Join(err, context.DeadlineExceeded), i.log)
		}
		time.Sleep(step)
	}
}

// waitLive waits until informerd has all pods and is caught up.
func (i *informerd) waitLive(ctx context.Context, pods int) (time.Duration, error) {
	return i.waitUntil(ctx, 10*time.Millisecond, 5*time.Minute, "live", func() (bool, error) {
		s, err := i.status(ctx)
		if err == nil && (s.State != "live" || s.Objects != pods) {
			err = fmt.Errorf("pods are %s with %d of %d objects", s.State, s.Objects, pods)
		}
		return err == nil, err
	})
}

// appPath is the route of the pods of an app in the label index.
func appPath(app string) string {
	return "/v1/resources/pods/indexes/label/" + url.PathEscape("app="+app)
}

// answers reports whether informerd says exactly which pods an app has, at their
// right versions.
func (i *informerd) answers(ctx context.Context, a app) (bool, error) {
	var list struct {
		Items []struct {
			Metadata struct{ Namespace, Name, ResourceVersion string }
		}
	}
	fields := "?fields=metadata.namespace,metadata.name,metadata.resourceVersion"
	if err := i.get(ctx, appPath(a.name)+fields, &list); err != nil {
		return false, err
	}
	got := map[string]string{}
	for _, item := range list.Items {
		got[item.Metadata.Namespace+"/"+item.Metadata.Name] = item.Metadata.ResourceVersion
	}
	if len(got) != len(list.Items) || !maps.Equal(got, a.pods) {
		return false, fmt.Errorf("app %s has %d pods, informerd says %d or other ones", a.name, len(a.pods), len(list.Items))
	}
	return true, nil
}

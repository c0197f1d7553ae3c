package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dataset is what the API server says it holds: what every subject is checked
// against.
type dataset struct {
	Pods   int    `json:"pods"`
	Bytes  int64  `json:"bytes"` // of the JSON list of all pods
	Server string `json:"server"`
	apps   []app
}

// app is one value of the label "app" and the pods that have it.
type app struct {
	name string
	pods map[string]string // resourceVersion by namespace/name
}

func (d *dataset) bytesPerPod() float64 { return float64(d.Bytes) / float64(d.Pods) }

// appNames are all values of the label "app".
func (d *dataset) appNames() []string {
	var names []string
	for _, a := range d.apps {
		names = append(names, a.name)
	}
	return names
}

// podsPath is the list of all pods from the API server's cache, as every
// informer without streaming lists asks for it.
const podsPath = "/api/v1/pods?resourceVersion=0"

// dataset asks the API server. It also makes the server's caches warm: the first
// subject finds what the others find.
func (c *cluster) dataset(ctx context.Context) (*dataset, error) {
	first, err := c.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	d := &dataset{Pods: len(first.Items), Server: c.info.Version}
	if first.RemainingItemCount != nil {
		d.Pods += int(*first.RemainingItemCount)
	}
	if d.Bytes, err = discard(ctx, c.http, c.info.Server+podsPath); err != nil {
		return nil, err
	}
	d.apps, err = c.apps(ctx)
	return d, err
}

// apps finds the values of the label "app" among the pods' owners, and the pods
// of each with a consistent read.
func (c *cluster) apps(ctx context.Context) ([]app, error) {
	sets, err := c.client.AppsV1().ReplicaSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, set := range sets.Items {
		if name := set.Labels["app"]; name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var apps []app
	for _, name := range slices.Compact(names) {
		pods, err := c.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
		if err != nil {
			return nil, err
		}
		a := app{name: name, pods: map[string]string{}}
		for _, pod := range pods.Items {
			a.pods[pod.Namespace+"/"+pod.Name] = pod.ResourceVersion
		}
		if len(a.pods) > 0 {
			apps = append(apps, a)
		}
	}
	if len(apps) == 0 {
		return nil, fmt.Errorf("none of %d ReplicaSets has pods and the label app", len(sets.Items))
	}
	return apps, nil
}

// appURL is the API server's answer to which pods an app has.
func (c *cluster) appURL(app string) string {
	return c.info.Server + podsPath + "&labelSelector=" + url.QueryEscape("app="+app)
}

// discard gets url and throws the bytes away.
func discard(ctx context.Context, client *http.Client, url string) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("get %s: %s", url, resp.Status)
	}
	return n, err
}

package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// startLister is a program that keeps nothing: for each question it lists all
// pods from the API server's watch cache, over protobuf into generated types,
// and looks through them.
func startLister(_ context.Context, rc *rest.Config) (*synced, error) {
	client, err := kubernetes.NewForConfig(overProtobuf(rc))
	if err != nil {
		return nil, err
	}
	ask := func(ctx context.Context, q question) (answer, error) {
		pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return nil, err
		}
		return q.of(func(yield func(*corev1.Pod) bool) {
			for i := range pods.Items {
				if !yield(&pods.Items[i]) {
					return
				}
			}
		}), nil
	}
	return &synced{ask: ask}, nil
}

// overProtobuf is rc for clients with generated types, in their cheapest form.
func overProtobuf(rc *rest.Config) *rest.Config {
	rc = rest.CopyConfig(rc)
	rc.ContentType = "application/vnd.kubernetes.protobuf"
	rc.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return rc
}

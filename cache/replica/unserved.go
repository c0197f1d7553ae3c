package replica

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// During an upgrade one of the API servers behind an address may not serve a resource
// that another does. What it says of the resource is no news: nothing of it was
// deleted, and the next connection may lead to a server that has it. Whether the
// resource is gone is for discovery to find out.

// isUnserved reports whether a server answered that it does not know the resource. One
// that has no object of a name says that name.
func isUnserved(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == ""
}

// elsewhere makes the next list or watch open a connection of its own, which a balancer
// may lead to another server.
func (c *cluster) elsewhere() {
	c.mu.RLock()
	client := c.streams
	c.mu.RUnlock()
	utilnet.CloseIdleConnectionsFor(client.Transport)
}

// objectMetadata gets the metadata of an object as etcd has it. The connection that
// most requests share may stay with a server that lacks the resource; the one of lists
// and watches is another after each attempt that failed.
func (s *source) objectMetadata(ctx context.Context, path string) (*metav1.PartialObjectMetadata, error) {
	meta, err := s.cluster.metadataAt(ctx, path, "")
	if !isUnserved(err) {
		return meta, err
	}
	s.cluster.mu.RLock()
	streams := s.cluster.streams
	s.cluster.mu.RUnlock()
	return s.cluster.metadataBy(ctx, streams, path, "")
}

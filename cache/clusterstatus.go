package cache

import (
	"cmp"
	"fmt"
	"time"
)

// ClusterStatus is what is known of a cluster at one moment.
type ClusterStatus struct {
	Name      string
	Server    string // URL of the API server, empty before Connect
	UID       string // identity, empty until the cluster answered once
	Version   string // gitVersion of the API server
	Reachable bool   // whether the last request got an answer
	Err       string // why not
	Since     time.Time
	// Discovered: it has told which resources it has. Until then one that is not
	// known may be there all the same.
	Discovered bool
}

// NotDiscovered is a *NotDiscoveredError with what keeps the cluster from telling which
// resources it has; nil once it has told. Whoever finds a resource missing asks
// before looking: what is missing after that is not there.
func (s ClusterStatus) NotDiscovered() error {
	if s.Discovered {
		return nil
	}
	return &NotDiscoveredError{s.Name, cmp.Or(s.Err, "it is being asked")}
}

// NotDiscoveredError is the ErrNotSynced of a cluster that has not told all its resources.
type NotDiscoveredError struct {
	Cluster string
	// Why ends the message. It may be an error of a connection, with addresses.
	Why string
}

func (e *NotDiscoveredError) Error() string {
	name := "the cluster"
	if e.Cluster != "" {
		name = "cluster " + e.Cluster
	}
	return fmt.Sprintf("%v: not all resources of %s are known yet: %s", ErrNotSynced, name, e.Why)
}

func (*NotDiscoveredError) Unwrap() error { return ErrNotSynced }

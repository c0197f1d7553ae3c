package cache

import (
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

// NotDiscovered is ErrNotSynced with what keeps the cluster from telling which
// resources it has; nil once it has told. Whoever finds a resource missing asks
// before looking: what is missing after that is not there.
func (s ClusterStatus) NotDiscovered() error {
	if s.Discovered {
		return nil
	}
	name, why := "the cluster", s.Err
	if s.Name != "" {
		name = "cluster " + s.Name
	}
	if why == "" {
		why = "it is being asked"
	}
	return fmt.Errorf("%w: not all resources of %s are known yet: %s", ErrNotSynced, name, why)
}

package handlers

import "time"

// Status is what is known of one handler now.
type Status struct {
	Name      string   `json:"name"`
	Resources []string `json:"resources"`
	// Sink is webhook, nats, kafka, or claim.
	Sink string `json:"sink"`
	// State is active, waiting (for copies that are not there yet), paused, or down (the sink
	// cannot be reached, or asked for patience).
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	// Known are the keys that were delivered, or noted as known.
	Known int `json:"known"`
	// Pending are the keys to be delivered, those in flight and retried included, and dead
	// letters not.
	Pending int `json:"pending"`
	// OldestSeconds is for how long the oldest of them has been pending.
	OldestSeconds float64 `json:"oldestSeconds"`
	InFlight      int     `json:"inFlight"`
	Retrying      int     `json:"retrying"`
	Dead          int     `json:"deadLetters"`
	// Delivered and Failed are counts since the start of the process; PerSecond is the rate of
	// deliveries in the last minute.
	Delivered uint64  `json:"delivered"`
	Failed    uint64  `json:"failed"`
	PerSecond float64 `json:"perSecond"`
	// FilterErrors counts the objects that the filter had no value for; FilterError is the
	// first of them.
	FilterErrors uint64    `json:"filterErrors,omitempty"`
	FilterError  string    `json:"filterError,omitempty"`
	LastError    string    `json:"lastError,omitempty"`
	LastErrorAt  time.Time `json:"lastErrorTime,omitzero"`
	LastDelivery time.Time `json:"lastDelivery,omitzero"`
	// SaveError is why what was delivered cannot be saved: deliveries wait for it.
	SaveError string `json:"saveError,omitempty"`
	// Lines are the resources it follows.
	Lines []LineStatus `json:"lines,omitempty"`
}

// LineStatus is what is known of one resource of a handler.
type LineStatus struct {
	Cluster  string `json:"cluster"`
	Resource string `json:"resource"` // such as deployments.v1.apps
	State    string `json:"state"`    // following, waiting, forbidden
	Reason   string `json:"reason,omitempty"`
	// ResourceVersion is up to where changes were considered.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Known           int    `json:"known"`
}

// DeadLetter is a key whose delivery was given up.
type DeadLetter struct {
	Cluster   string    `json:"cluster"`
	Resource  string    `json:"resource"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	Attempts  int       `json:"attempts"`
	Error     string    `json:"error"`
	Since     time.Time `json:"since"`
}

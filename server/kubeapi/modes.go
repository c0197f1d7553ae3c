package kubeapi

import "github.com/informerd/informerd/cache"

// Modes say where answers may come from.
type Modes struct {
	// Reads is how a get, list or watch without a resourceVersion is answered;
	// a request may say otherwise in its header ReadsHeader.
	Reads Reads
	// Passthrough is what goes on to the API server with the caller's own
	// credentials.
	Passthrough Passthrough
	// Lists is what lists and watches show to who may not see all of what they ask for;
	// a request may ask for Visible by itself.
	Lists Lists
}

// Lists is the meaning of a list or watch of more than may be seen.
type Lists string

const (
	// Strict: it is refused, as by the API server. The default.
	Strict Lists = "strict"
	// Visible: it is of what may be seen.
	Visible Lists = "visible"
)

// Reads is the meaning of an unset resourceVersion.
type Reads string

const (
	// Cached: whatever the copy holds, but nothing from before a write that who asks has
	// lately passed on. The default.
	Cached Reads = "cached"
	// Consistent: what the API server held when it was asked, as by the
	// Kubernetes contract.
	Consistent Reads = cache.ConsistentReads
)

// ReadsHeader is the request header that chooses the Reads of one request.
const ReadsHeader = cache.ReadsHeader

// Passthrough is what is forwarded.
type Passthrough string

const (
	// PassNone forwards nothing. The default.
	PassNone Passthrough = "none"
	// PassReads forwards reads of what is not held: unwatched resources,
	// subresources, logs.
	PassReads Passthrough = "reads"
	// PassAll forwards writes, too.
	PassAll Passthrough = "all"
)

func (m Modes) passesReads() bool  { return m.Passthrough == PassReads || m.Passthrough == PassAll }
func (m Modes) passesWrites() bool { return m.Passthrough == PassAll }

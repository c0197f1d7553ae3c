// Package discovery answers which resources of one cluster can be watched now.
//
// A Discoverer asks the API server what it serves, once per PollInterval and
// soon after a CustomResourceDefinition or APIService changed, and reports the
// full current Set whenever it differs from the last one. An idle poll is two
// requests answered 304 Not Modified. It never sends a LIST to a server that
// can stream lists: its two triggers are watches.
//
// Failing to learn is not learning that something is gone. A group that does
// not answer keeps its resources, marked Stale; a server that does not answer
// changes nothing. A resource goes only when discovery succeeds without it and
// either the watches confirm it or more looks do, at all API servers that a balancer
// leads to. While these differ, as they do during an upgrade, what one of them
// lacks stays as it was.
//
// The package does not watch the resources it reports, and knows nothing of
// which of them are wanted.
package discovery

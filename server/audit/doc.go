// Package audit writes who asked for what, and how much they were given: one line of
// JSON for each request, in the words of Kubernetes' own audit log where it has words for
// it. What was answered is never in it, nor anything that lets somebody in.
//
// It never makes a request wait, nor refuses one: what cannot be written is dropped,
// counted and told to the log.
package audit

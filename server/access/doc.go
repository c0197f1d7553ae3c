// Package access says who asks, and what they may see. Package server and what is
// below it read through the cache.Scope that it gives them, and in no other way.
//
// It refuses to guess. A request of which nobody said who asks, and a question
// that cannot be answered now, see nothing.
package access

// Package health tells what state an object is in, whatever its kind: good, progressing,
// bad or unknown, with the reason in the words of Kubernetes, a sentence for people, and
// since when.
//
// The verdict on one object is a function of its own bytes and the time. What an object
// hides about those it owns is added by an Index: a Deployment that calls itself
// available while its pods crash is as bad as they are, and names the one that shows why.
//
// It refuses to guess: what an object does not tell is not known, and where the object
// alone cannot show whether something is wrong, it is not called bad.
package health

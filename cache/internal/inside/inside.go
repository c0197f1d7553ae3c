// Package inside has the key to copies as a whole. Only packages below cache can import
// it: those that fill copies, save them, or compute something from them. Whoever answers
// a request is outside, and has to say what may be seen.
package inside

// Key opens a copy.
type Key struct{ _ [0]func() } // nobody else can make one up

// Cache is the Key of package cache and what is below it.
var Cache Key

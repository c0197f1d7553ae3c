package persist

// runChild is what the test binary does when a test has started it as another
// process.
func runChild() bool { return false }

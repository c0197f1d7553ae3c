// Package sinks has brokers that go and come back, real or nearly so, and tests a Manager with
// its sinks and a ledger on disk, as informerd has them, against these.
package sinks

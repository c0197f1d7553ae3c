// Package guard decides which addresses a sink may dial, so that a configuration, a name
// service or a broker that names others cannot turn informerd against the network it runs in.
// Addresses are checked when they are dialled, after names were resolved: a name that resolves
// to something else than before does not help.
package guard

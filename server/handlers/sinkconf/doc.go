// Package sinkconf has what the configurations of sinks have in common: mistakes that name
// their field, and files with secrets and certificates, which may change while informerd runs.
package sinkconf

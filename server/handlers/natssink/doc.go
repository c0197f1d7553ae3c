// Package natssink delivers to NATS JetStream: each delivery is a message with a CloudEvent,
// published with the delivery's id, so that a stream stores it once however often it is
// repeated, and taken when the stream has acknowledged it.
//
// The connection is made when it is first needed, and again when it was lost; credentials and
// certificates are read from their files each time. Only the servers that are named are
// dialled, not those that they tell of.
package natssink

// Package kafkasink delivers to Kafka: each delivery is a record with a CloudEvent, its key the
// object, and taken when all replicas in sync have it. Records of one object are in one
// partition, in the order of its states.
//
// Brokers are dialled when they are first needed; credentials and certificates are read from
// their files for each connection. What the brokers say where others are is dialled, as Kafka
// works, but no address that server/handlers/guard refuses.
package kafkasink

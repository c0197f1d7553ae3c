// Package cloudevent makes CloudEvents 1.0 of deliveries, for every sink the same. docs/handlers.md
// has the attributes.
package cloudevent

package server

import "maps"

// schemas are all that the description names.
var schemas = func() map[string]openSchema {
	all := maps.Clone(querySchemas)
	maps.Copy(all, handlerSchemas)
	return all
}()

// handlerSchemas are those of the answers about handlers, and of the bodies they take.
var handlerSchemas = map[string]openSchema{
	"Handler":     handlerSchema,
	"HandlerList": listOf(handlerSchema, nil),
	"DeadLetterList": listOf(object(map[string]openSchema{
		"cluster": text, "resource": text, "namespace": text, "name": text, "attempts": natural, "error": text, "since": text,
	}), nil),
	"ClaimList": listOf(object(map[string]openSchema{
		"token": text, "expires": text, "id": text, "transition": {Type: "string", Enum: []any{"enters", "changes", "leaves"}},
		"cluster": text, "group": text, "version": text, "resource": text, "kind": text, "namespace": text, "name": text,
		"uid": text, "resourceVersion": text, "attempt": natural, "since": text, "sequence": natural, "object": {
			Description: "What is sent of the object; null of one of whose end nothing more is known", OneOf: []openSchema{ref("Object")}, Nullable: true},
	}), nil),
	"TokenResults": object(map[string]openSchema{"results": arrayOf(object(map[string]openSchema{"token": text, "ok": boolean, "reason": text}))}),
	"Steered":      object(map[string]openSchema{"name": text, "paused": boolean}),
	"Redriven":     object(map[string]openSchema{"redriven": natural}),
	"Tokens":       object(map[string]openSchema{"tokens": arrayOf(text)}),
	"Keys": object(map[string]openSchema{"keys": arrayOf(object(map[string]openSchema{
		"cluster": text, "resource": text, "namespace": text, "name": text,
	}))}),
}

var handlerSchema = object(map[string]openSchema{
	"name": text, "resources": arrayOf(text), "sink": {Type: "string", Enum: []any{"webhook", "nats", "kafka", "claim"}},
	"state": {Type: "string", Enum: []any{"active", "waiting", "paused", "down"}}, "reason": text,
	"known": natural, "pending": natural, "oldestSeconds": number, "inFlight": natural, "retrying": natural, "deadLetters": natural,
	"delivered": natural, "failed": natural, "perSecond": number, "filterErrors": natural, "filterError": text,
	"lastError": text, "lastErrorTime": text, "lastDelivery": text, "saveError": text,
	"lines": arrayOf(object(map[string]openSchema{
		"cluster": text, "resource": text, "state": {Type: "string", Enum: []any{"following", "waiting", "forbidden"}}, "reason": text,
		"resourceVersion": text, "known": natural,
	})),
	"may": arrayOf(openSchema{Type: "string", Enum: []any{"pause", "resume", "redrive"}}),
})

var number = openSchema{Type: "number"}

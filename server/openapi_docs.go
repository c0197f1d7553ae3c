package server

import "maps"

// routeDoc describes a route; a test holds routeDocs to the routes.
type routeDoc struct {
	summary, answer string
	media           string   // of a text; otherwise the answer is JSON
	schemas         []string // one of them
	body, bodyText  string   // its schema, and what it is for; empty: none is needed
	// parameters are those that mean something else here than on other routes.
	parameters map[string]parameterDoc
}

var clustersDoc = parameterDoc{"Names of the clusters to ask; default all", text}

// prettyDoc is of the routes that answer with lists of objects.
var prettyDoc = parameterDoc{"Indented JSON; items: not indented, and each item of a list begins a line", oneOf("false", "true", prettyItems)}

var routeDocs = map[string]routeDoc{
	"/livez":           {summary: "Is the process serving", answer: "It is", media: typeText},
	"/readyz":          {summary: "Is there an answer for every resource that can have one", answer: "There is", media: typeText},
	"/metrics":         {summary: "Prometheus metrics", answer: "The metrics", media: typeText},
	"/v1/openapi.json": {summary: "This description", answer: "OpenAPI 3.0", schemas: []string{"Any"}},
	"/v1/resources":    {summary: "Every discovered resource and what is held of it", answer: "A ResourceList", schemas: []string{"List"}},
	"/v1/resources/{resource}": {
		summary: "One resource and what is held of it", answer: "The resource", schemas: []string{"Any"}},
	"/v1/resources/{resource}/objects": {
		summary: "Objects of one resource", answer: "A list of objects or groups, a table, a plan, or a stream", schemas: objectSchemas,
		parameters: map[string]parameterDoc{"cluster": clustersDoc, "pretty": prettyDoc}},
	"/v1/resources/{resource}/objects/{namespace}/{name}": {
		summary: "One object", answer: "The object", schemas: []string{"Object"}},
	"/v1/resources/{resource}/indexes": {
		summary: "The indexes of a resource", answer: "An IndexList", schemas: []string{"List"}},
	"/v1/resources/{resource}/columns": {
		summary: "What is kept of all objects of a resource for questions that are asked again and again, and what it costs", answer: "A ColumnList", schemas: []string{"ColumnList"}},
	"/v1/resources/{resource}/indexes/{index}": {
		summary: "The values of an index and how many objects each has", answer: "An IndexValueList", schemas: []string{"List"}},
	"/v1/resources/{resource}/indexes/{index}/*": {
		summary: "The objects under one value of an index", answer: "A list of objects or groups, a table, a plan, or a stream", schemas: objectSchemas,
		parameters: map[string]parameterDoc{"cluster": clustersDoc, "pretty": prettyDoc}},
	"/v1/query": {
		summary: "The same question to many resources", answer: "A list of objects or groups, a table, a plan, or a stream", schemas: objectSchemas,
		parameters: map[string]parameterDoc{"cluster": clustersDoc, "pretty": prettyDoc}},
	"/v1/search": {summary: "Objects of all kinds by words", answer: "A SearchResultList", schemas: []string{"List"},
		parameters: map[string]parameterDoc{"cluster": clustersDoc}},
	"/v1/complete": {summary: "Proposals for resources, paths and values", answer: "A CompletionList", schemas: []string{"List"},
		parameters: map[string]parameterDoc{"cluster": clustersDoc, "resource": {"Of which resource, for paths and values", text}}},
	"/v1/health": {
		summary: "What is not as it should be, of all kinds, the worst first, and why", answer: "A HealthList, or a stream", schemas: []string{"HealthList"},
		parameters: map[string]parameterDoc{"resources": {"Resources to look at, separated by commas, globs allowed: pods,*.apps; default all", text}}},
	"/v1/health/{resource}/{namespace}/{name}": {
		summary: "The health of one object and of what it owns", answer: "The health", schemas: []string{"Health"},
		parameters: map[string]parameterDoc{"limit": {"At most so many of what it owns", natural}}},
	"/v1/drain/{node}": {summary: "What draining a node would do to its pods: what would be blocked, lost, interrupted or moved", answer: "A Drain", schemas: []string{"Drain"}},
	"/v1/graph/dangling": {
		summary: "References to what is not there, and selectors that select nothing", answer: "A DanglingList", schemas: []string{"List"},
		parameters: map[string]parameterDoc{"kinds": {"Resources, separated by commas: only what they hold or what names them", text}}},
	"/v1/graph/{resource}/{namespace}/{name}": {
		summary: "What an object is related to, and how", answer: "Nodes and edges, a tree, or Graphviz DOT", schemas: []string{"Any"},
		parameters: map[string]parameterDoc{
			"view":   {"Nodes and edges, or a tree", oneOf("graph", "tree")},
			"output": {"JSON, or DOT for Graphviz", oneOf("json", "dot")},
			"limit":  {"At most so many nodes", natural},
		}},
	"/v1/handlers": {summary: "The handlers that deliver changes, and how they are", answer: "A HandlerList", schemas: []string{"HandlerList"}},
	"/v1/handlers/{handler}": {
		summary: "One handler, with the resources it follows", answer: "The handler", schemas: []string{"Handler"}},
	"/v1/handlers/{handler}/deadletters": {
		summary: "The keys whose delivery was given up", answer: "A DeadLetterList", schemas: []string{"DeadLetterList"}},
	"/v1/handlers/{handler}/claim": {
		summary: "Wait for keys of a handler without a sink, and borrow them", answer: "A ClaimList, empty if there was none", schemas: []string{"ClaimList"}},
	"/v1/handlers/{handler}/ack": {
		summary: "What was claimed has been dealt with", answer: "A result for each token", schemas: []string{"TokenResults"},
		body: "Tokens", bodyText: "The tokens of the claims; or token in the URL"},
	"/v1/handlers/{handler}/nack": {
		summary: "Give claims back, to be had again after a while", answer: "A result for each token", schemas: []string{"TokenResults"},
		body: "Tokens", bodyText: "The tokens of the claims; or token in the URL"},
	"/v1/handlers/{handler}/extend": {
		summary: "Keep claims for longer", answer: "A result for each token", schemas: []string{"TokenResults"},
		body: "Tokens", bodyText: "The tokens of the claims; or token in the URL",
		parameters: map[string]parameterDoc{"lease": {"How long they are kept from now on, 30s by default", text}}},
	"/v1/handlers/{handler}/pause":  {summary: "Deliver nothing until it is resumed", answer: "What it is now", schemas: []string{"Steered"}},
	"/v1/handlers/{handler}/resume": {summary: "Deliver again", answer: "What it is now", schemas: []string{"Steered"}},
	"/v1/handlers/{handler}/redrive": {
		summary: "Send dead letters again", answer: "How many", schemas: []string{"Redriven"},
		body: "Keys", bodyText: "Which; all without a body"},
}

var objectSchemas = []string{"ObjectList", "GroupList", "Table", "Explanation"}

var pathDocs = map[string]string{
	"handler":   "The name of a handler",
	"node":      "The name of a node",
	"resource":  "A name that kubectl accepts: pods, deployments.apps, deployments.v1.apps, po",
	"namespace": "The namespace, - for objects of cluster scope",
	"name":      "The name of the object",
	"index":     "The name of an index",
	"value":     "An indexed value: the rest of the path, slashes included",
}

type parameterDoc struct {
	text   string
	schema openSchema
}

var (
	text    = openSchema{Type: "string"}
	boolean = openSchema{Type: "boolean"}
	zero    = 0
	natural = openSchema{Type: "integer", Minimum: &zero}
)

func oneOf(words ...any) openSchema {
	return openSchema{Type: "string", Enum: words, Default: words[0]}
}

// parameterDocs describes every parameter; docs/api.md says more.
var parameterDocs = map[string]parameterDoc{
	"cluster":         {"Name of the cluster; needed only when there are several", text},
	"pretty":          {"Indented JSON", boolean},
	"namespace":       {"Namespaces to look in, globs allowed; any of them", text},
	"resources":       {"Resources to ask, separated by commas, globs allowed: pods,*.apps; default all", text},
	"labelSelector":   {"Kubernetes' grammar: app=web,tier in (a,b),!legacy", text},
	"fieldSelector":   {"Kubernetes' grammar on any path: status.phase!=Running, spec.containers[*].image=web:1", text},
	"filter":          {"A CEL expression that is true for the objects wanted; object, now and age(x) are defined", text},
	"index":           {"name:value; all of them must hold", text},
	"fields":          {"Paths to answer with, separated by commas", text},
	"view":            {"Whole objects, their metadata alone, or rows with the columns of kubectl get", oneOf("full", "metadata", "table")},
	"sort":            {"Paths to order by, separated by commas, descending with a minus before; of groups, their columns", text},
	"count":           {"Whether to say how many items follow", oneOf("exact", "none")},
	"output":          {"The form of a list", oneOf("json", "yaml", "csv", "ndjson", "table")},
	"groupBy":         {"Paths to group objects by, separated by commas", text},
	"agg":             {"What to compute of each group, separated by commas: count(), sum(path), min(path), max(path), avg(path)", text},
	"facets":          {"Paths whose values are counted, separated by commas", text},
	"explain":         {"Answer with the plan", boolean},
	"limit":           {"At most so many items; 0 for all", natural},
	"continue":        {"The token of the page before", text},
	"resourceVersion": {"Answer from this version or a later one; with watch, the changes after it", text},
	"timeout":         {"How long to wait for resourceVersion: 500ms, 5s, or seconds", text},
	"watch":           {"A stream of server-sent events instead of a list", boolean},
	"timeoutSeconds":  {"End the stream after so long", natural},
	"prefix":          {"Only values that begin so", text},
	"q":               {"Words, and key:word: checkout ns:shop kind:deploy label:team=storefront", text},
	"highlights":      {"Say where in each object the words are", boolean},
	"for":             {"What to propose", openSchema{Type: "string", Enum: []any{"resources", "paths", "values"}}},
	"resource":        {"A resource", text},
	"path":            {"The path whose values are proposed", text},
	"depth":           {"How many edges away from the object to go, 1 to 5", natural},
	"direction":       {"out: what the object needs and consists of; in: what needs it", oneOf("both", "in", "out")},
	"kinds":           {"Resources, separated by commas: only walk to these", text},
	"edges":           {"Kinds of edges, separated by commas: only follow these", text},
	"through":         {"Resources whose hubs are walked through, separated by commas", text},
	"status":          {"Which to list, separated by commas: bad, progressing, unknown, good; default bad,progressing", text},
	"all":             {"List also what belongs to something that is listed for the same trouble", boolean},
	"stale":           {"ok: ready although the API server has been silent for longer than a proof lasts", oneOf("ok")},
	"max":             {"At most so many keys, 1 to 1000; default 1", natural},
	"lease":           {"How long they are lent, 30s by default; the handler's maxLease at most", text},
	"wait":            {"How long to wait for the first key, 0s to 1m; default 30s", text},
	"token":           {"The token of a claim; several are given several times, or in the body", text},
	"after":           {"After how long it is to be had again; default what the handler's retry says", text},
	"reason":          {"Why, for who looks at the handler", text},
	"verbose":         {"The full text also when ready", boolean},
}

func object(properties map[string]openSchema) openSchema {
	return openSchema{Type: "object", Properties: properties}
}

func arrayOf(item openSchema) openSchema { return openSchema{Type: "array", Items: &item} }

func mapOf(value openSchema) openSchema {
	return openSchema{Type: "object", AdditionalProperties: &value}
}

// listOf is a list of items, with what lists have in common.
func listOf(item openSchema, more map[string]openSchema) openSchema {
	properties := map[string]openSchema{"kind": text, "apiVersion": text, "metadata": ref("ListMeta"), "items": arrayOf(item)}
	for name, s := range more {
		properties[name] = s
	}
	return object(properties)
}

var anything = openSchema{}

// healthItemSchema is an object and its health, with more of it.
func healthItemSchema(more map[string]openSchema) openSchema {
	properties := map[string]openSchema{
		"id": text, "resource": text, "kind": text, "namespace": text, "name": text,
		"status": {Type: "string", Enum: []any{"bad", "progressing", "unknown", "good"}}, "reason": text, "message": text, "since": text,
	}
	maps.Copy(properties, more)
	return object(properties)
}

func healthCountsSchema(more map[string]openSchema) openSchema {
	properties := map[string]openSchema{"good": natural, "progressing": natural, "bad": natural, "unknown": natural}
	maps.Copy(properties, more)
	return object(properties)
}

var querySchemas = map[string]openSchema{
	"Any":        object(nil),
	"Object":     object(map[string]openSchema{"apiVersion": text, "kind": text, "metadata": object(nil)}),
	"List":       listOf(object(nil), nil),
	"ObjectList": listOf(ref("Object"), map[string]openSchema{"facets": arrayOf(ref("Facet"))}),
	"GroupList": listOf(object(map[string]openSchema{"group": mapOf(anything), "values": mapOf(anything)}),
		map[string]openSchema{"facets": arrayOf(ref("Facet"))}),
	"Table": listOf(object(map[string]openSchema{"cluster": text, "resource": text, "cells": arrayOf(anything), "object": ref("Object")}),
		map[string]openSchema{"facets": arrayOf(ref("Facet")), "columns": arrayOf(object(map[string]openSchema{
			"cluster": text, "resource": text, "namespaced": boolean, "columns": arrayOf(object(map[string]openSchema{
				"name": text, "type": text, "format": text, "description": text, "priority": natural,
			})),
		}))}),
	"Explanation": listOf(object(map[string]openSchema{
		"cluster": text, "resource": text, "objects": natural, "indexes": arrayOf(text), "candidates": natural,
		"scanned": natural, "excerpts": natural, "columns": arrayOf(text), "matched": natural, "sortedBy": text, "filterErrors": ref("FilterErrors"),
		"advice": arrayOf(object(map[string]openSchema{"path": text, "config": text})),
	}), nil),
	"ColumnList": listOf(object(map[string]openSchema{
		"paths": arrayOf(text), "pinned": boolean, "kept": boolean, "reason": text, "objects": natural, "values": natural, "bytes": natural, "asked": natural, "lastAsked": text,
	}), nil),
	"HealthList": listOf(healthItemSchema(map[string]openSchema{"affected": natural, "cause": healthItemSchema(nil)}), map[string]openSchema{
		"summary": healthCountsSchema(nil), "resources": arrayOf(healthCountsSchema(map[string]openSchema{"resource": text, "kind": text})),
		"namespaces": arrayOf(healthCountsSchema(map[string]openSchema{"namespace": text})), "unanswered": arrayOf(object(nil)),
	}),
	"Drain": object(map[string]openSchema{
		"kind": text, "apiVersion": text, "node": text, "partial": boolean, "budgetsUnknown": boolean, "summary": object(map[string]openSchema{
			"blocked": natural, "lost": natural, "interrupted": natural, "moves": natural, "finished": natural, "stays": natural}),
		"items": arrayOf(object(map[string]openSchema{
			"id": text, "namespace": text, "name": text, "fate": {Type: "string", Enum: []any{"blocked", "lost", "interrupted", "moves", "finished", "stays"}},
			"reason": text, "controller": text, "losesData": boolean,
		})),
	}),
	"Health": object(map[string]openSchema{
		"kind": text, "apiVersion": text, "metadata": ref("ListMeta"), "unanswered": arrayOf(object(nil)), "children": arrayOf(healthItemSchema(nil)),
		"item": healthItemSchema(map[string]openSchema{"affected": natural, "cause": healthItemSchema(nil)}),
	}),
	"Facet": object(map[string]openSchema{
		"path": text, "truncated": boolean,
		"values": arrayOf(object(map[string]openSchema{"value": anything, "objects": natural})),
	}),
	"ListMeta": object(map[string]openSchema{
		"resourceVersion": text, "continue": text, "remainingItemCount": natural, "truncated": boolean,
		"filterErrors": ref("FilterErrors"), "aggErrors": mapOf(natural), "resources": arrayOf(ref("ResourceState")),
	}),
	"FilterErrors": object(map[string]openSchema{"count": natural, "object": text, "first": text}),
	"ResourceState": object(map[string]openSchema{
		"cluster": text, "resource": text, "kind": text, "state": text, "answered": boolean, "reason": text,
		"resourceVersion": text, "objects": natural, "filterErrors": ref("FilterErrors"),
	}),
	"Status": object(map[string]openSchema{
		"kind": text, "apiVersion": text, "metadata": object(nil), "status": text, "message": text, "reason": text, "code": natural,
		"details": object(map[string]openSchema{
			"retryAfterSeconds": natural,
			"causes":            arrayOf(object(map[string]openSchema{"reason": text, "message": text, "field": text})),
		}),
	}),
}

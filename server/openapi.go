package server

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// The types below are the part of OpenAPI 3.0 that describes this API.
type openAPI struct {
	OpenAPI    string              `json:"openapi"`
	Info       openInfo            `json:"info"`
	Paths      map[string]openPath `json:"paths"`
	Components openComponents      `json:"components"`
}

type openInfo struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Version     string `json:"version"`
}

type openPath struct {
	Get  *openOperation `json:"get,omitempty"`
	Post *openOperation `json:"post,omitempty"`
}

// operation is the one that a path has.
func (p openPath) operation() openOperation {
	if p.Post != nil {
		return *p.Post
	}
	return *p.Get
}

type openOperation struct {
	OperationID string                  `json:"operationId"`
	Summary     string                  `json:"summary"`
	Parameters  []openParameter         `json:"parameters,omitempty"`
	RequestBody *openBody               `json:"requestBody,omitempty"`
	Responses   map[string]openResponse `json:"responses"`
}

type openParameter struct {
	Name        string     `json:"name"`
	In          string     `json:"in"`
	Description string     `json:"description"`
	Required    bool       `json:"required,omitempty"`
	Explode     *bool      `json:"explode,omitempty"`
	Schema      openSchema `json:"schema"`
}

type openBody struct {
	Description string               `json:"description"`
	Content     map[string]openMedia `json:"content"`
}

type openResponse struct {
	Description string               `json:"description"`
	Content     map[string]openMedia `json:"content,omitempty"`
}

type openMedia struct {
	Schema openSchema `json:"schema"`
}

type openSchema struct {
	Ref                  string                `json:"$ref,omitempty"`
	Type                 string                `json:"type,omitempty"`
	Description          string                `json:"description,omitempty"`
	Enum                 []any                 `json:"enum,omitempty"`
	Default              any                   `json:"default,omitempty"`
	Minimum              *int                  `json:"minimum,omitempty"`
	Items                *openSchema           `json:"items,omitempty"`
	Properties           map[string]openSchema `json:"properties,omitempty"`
	AdditionalProperties *openSchema           `json:"additionalProperties,omitempty"`
	OneOf                []openSchema          `json:"oneOf,omitempty"`
	Nullable             bool                  `json:"nullable,omitempty"`
}

type openComponents struct {
	Schemas map[string]openSchema `json:"schemas"`
}

// serveOpenAPI describes every route and parameter there is.
func (s *Server) serveOpenAPI(w http.ResponseWriter, r *http.Request) error {
	pretty, err := paramsOf(r).flag("pretty")
	if err != nil {
		return err
	}
	if err := negotiate(w, r, typeJSON); err != nil {
		return err
	}
	return writeJSON(w, r, s.describe(), pretty)
}

func (s *Server) describe() openAPI {
	doc := openAPI{
		OpenAPI: "3.0.3",
		Info: openInfo{
			Title:       "informerd",
			Description: "A read replica of the Kubernetes API: objects of every kind, filtered, sorted, grouped and watched.",
			Version:     s.Version,
		},
		Paths:      map[string]openPath{},
		Components: openComponents{Schemas: schemas},
	}
	for pattern, parameters := range s.parameters {
		if !described(pattern) {
			continue
		}
		path := strings.Replace(pattern, "*", "{value}", 1)
		if s.posts[pattern] {
			op := operation("post", path, routeDocs[pattern], parameters)
			doc.Paths[path] = openPath{Post: &op}
			continue
		}
		op := operation("get", path, routeDocs[pattern], parameters)
		doc.Paths[path] = openPath{Get: &op}
	}
	return doc
}

// described leaves out the page, and what Kubernetes describes.
func described(pattern string) bool {
	return strings.HasPrefix(pattern, "/v1/") || pattern == "/livez" || pattern == "/readyz" || pattern == "/metrics"
}

var pathParameter = regexp.MustCompile(`{(\w+)}`)

func operation(method, path string, route routeDoc, parameters []string) openOperation {
	op := openOperation{OperationID: operationID(method, path), Summary: route.summary, Responses: map[string]openResponse{
		"200":     {Description: route.answer, Content: route.content(parameters)},
		"default": {Description: "Why there is no answer", Content: map[string]openMedia{typeJSON: {ref("Status")}}},
	}}
	for _, match := range pathParameter.FindAllStringSubmatch(path, -1) {
		op.Parameters = append(op.Parameters, openParameter{
			Name: match[1], In: "path", Required: true, Description: pathDocs[match[1]], Schema: openSchema{Type: "string"},
		})
	}
	for _, name := range slices.Sorted(slices.Values(parameters)) {
		op.Parameters = append(op.Parameters, route.parameter(name, repeats(name, parameters)))
	}
	if route.body != "" {
		op.RequestBody = &openBody{Description: route.bodyText, Content: map[string]openMedia{typeJSON: {ref(route.body)}}}
	}
	return op
}

// operationID makes getV1ResourcesResourceObjects of a method and a path.
func operationID(method, path string) string {
	id := method
	for word := range strings.FieldsFuncSeq(path, func(c rune) bool { return strings.ContainsRune("/{}.", c) }) {
		id += strings.ToUpper(word[:1]) + word[1:]
	}
	return id
}

func (d routeDoc) parameter(name string, repeated bool) openParameter {
	doc, own := d.parameters[name]
	if !own {
		doc = parameterDocs[name]
	}
	p := openParameter{Name: name, In: "query", Description: doc.text, Schema: doc.schema}
	if repeated {
		explode := true
		item := p.Schema
		p.Explode, p.Schema = &explode, openSchema{Type: "array", Items: &item}
	}
	return p
}

// content says in which forms a route answers.
func (d routeDoc) content(parameters []string) map[string]openMedia {
	if d.media != "" {
		return map[string]openMedia{d.media: {openSchema{Type: "string"}}}
	}
	answer := openSchema{}
	for _, name := range d.schemas {
		answer.OneOf = append(answer.OneOf, ref(name))
	}
	if len(answer.OneOf) == 1 {
		answer = answer.OneOf[0]
	}
	content := map[string]openMedia{typeJSON: {answer}}
	if slices.Contains(parameters, "output") && slices.Contains(parameters, "sort") {
		for _, media := range slices.Sorted(maps.Values(mediaTypes)) {
			if media != typeJSON {
				content[media] = openMedia{openSchema{Type: "string"}}
			}
		}
	}
	if _, dot := d.parameters["output"]; dot {
		content[typeDOT] = openMedia{openSchema{Type: "string"}}
	}
	if slices.Contains(parameters, "watch") {
		content[typeEvents] = openMedia{openSchema{Type: "string"}}
	}
	return content
}

func ref(name string) openSchema { return openSchema{Ref: "#/components/schemas/" + name} }

package cloudevent

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/binding/spec"
	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"
)

// Attribute is one attribute of an event as text. Extensions are attributes, too.
type Attribute struct{ Name, Value string }

// Attributes are those of e by name, for bindings that put them beside the data.
func Attributes(ctx context.Context, e *event.Event) ([]Attribute, error) {
	var w attributes
	if err := (*binding.EventMessage)(e).ReadBinary(ctx, &w); err != nil {
		return nil, fmt.Errorf("read the attributes of a CloudEvent: %w", err)
	}
	slices.SortFunc(w, func(a, b Attribute) int { return strings.Compare(a.Name, b.Name) })
	return w, nil
}

// attributes collects what the SDK's binding tells.
type attributes []Attribute

var _ binding.BinaryWriter = (*attributes)(nil)

func (a *attributes) Start(context.Context) error { return nil }
func (a *attributes) End(context.Context) error   { return nil }
func (a *attributes) SetData(io.Reader) error     { return nil }

func (a *attributes) SetAttribute(attribute spec.Attribute, value any) error {
	return a.SetExtension(attribute.Name(), value)
}

func (a *attributes) SetExtension(name string, value any) error {
	text, err := types.Format(value)
	if err == nil {
		*a = append(*a, Attribute{name, text})
	}
	return err
}

// HeaderValue is text as CloudEvents' HTTP binding has it in a header: spaces, quotes, percent
// signs and what is not ASCII are percent-encoded.
func HeaderValue(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c > '~' || c == '"' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

package search

import "strings"

// Field is where in an object a text is.
type Field uint8

// The fields. A word without a field is looked for in all of them.
const (
	Any Field = iota
	Name
	Namespace
	Kind
	Label
	Image
	Annotation
	Text
	fields
)

var fieldNames = [fields]string{"any", "name", "namespace", "kind", "label", "image", "annotation", "text"}

func (f Field) String() string { return fieldNames[f] }

// keys are the words before a colon that name a field.
var keys = map[string]Field{
	"name": Name, "namespace": Namespace, "ns": Namespace, "kind": Kind,
	"label": Label, "image": Image, "annotation": Annotation, "text": Text,
}

// Points of a match. Those of several words add up; what a name has counts for
// more than all else together.
const (
	exactName  = 1000
	nameStart  = 500
	nameWord   = 200
	exactPlace = 30 // of a namespace or kind
	placeStart = 20
	atLabel    = 15 // and image
	atText     = 5
)

// points rates that a text of the field has the word.
func (f Field) points(text, word string) uint16 {
	switch f {
	case Name:
		if text == word {
			return exactName
		}
		if strings.HasPrefix(text, word) {
			return nameStart
		}
		return nameWord
	case Namespace:
		if text == word {
			return exactPlace
		}
		return placeStart
	case Label, Image:
		return atLabel
	default:
		return atText
	}
}

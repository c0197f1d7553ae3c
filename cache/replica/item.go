package replica

import (
	"errors"
	"time"

	"github.com/informerd/informerd/cache"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// item is what travels from the decoder of a watch, or of a streaming list, through client-go's
// Reflector to the sink: an object, or a bookmark when obj is nil. The embedded metav1.Object
// stays nil; it only lets the compiler accept item where the Reflector asks for
// an accessor, of which it calls the four methods below and no other
// (client-go tools/cache/reflector.go, handleAnyWatch).
type item struct {
	metav1.Object
	obj             *cache.Object
	resourceVersion string
	// initialEventsEnd marks the bookmark that ends a streaming list (KEP-3157).
	initialEventsEnd bool
	// age is how old the copy was that sent a bookmark; 0 of an API server. copied
	// tells the two apart.
	age    time.Duration
	copied bool
	// err says why the object could not be decoded; obj is nil then.
	err error
}

// errNoObject is about an event of an object that has none: without a name it looks
// like a bookmark.
var errNoObject = errors.New("the event names no object")

// fault says what is wrong with the item as an event of a type; nil for nothing.
func (i *item) fault(t watch.EventType) error {
	if i.err == nil && i.obj == nil && t != watch.Bookmark {
		return errNoObject
	}
	return i.err
}

func (i *item) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }
func (i *item) DeepCopyObject() runtime.Object   { return i }
func (i *item) GetResourceVersion() string       { return i.resourceVersion }

func (i *item) GetNamespace() string {
	if i.obj == nil {
		return ""
	}
	return i.obj.Namespace()
}

func (i *item) GetName() string {
	if i.obj == nil {
		return ""
	}
	return i.obj.Name()
}

func (i *item) GetAnnotations() map[string]string {
	if i.initialEventsEnd {
		return map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return nil
}

// listed is an object of a list, of which the Reflector asks nothing. It is a pointer and nothing
// else, so that an interface has it without memory of its own: what wraps a million objects while
// they are listed would be garbage among them afterwards.
type listed struct{ obj *cache.Object }

func (l listed) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }
func (l listed) DeepCopyObject() runtime.Object   { return l }

// itemList is the answer to a list.
type itemList struct {
	metav1.ListMeta
	Items []runtime.Object
}

func (l *itemList) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }
func (l *itemList) DeepCopyObject() runtime.Object   { return l }

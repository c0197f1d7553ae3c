package replica

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxObjectBytes bounds one object on the wire. etcd refuses more than 1.5 MiB,
// client-go's stream decoder more than 16 MiB.
const maxObjectBytes = 16 << 20

// rawSerializer is the negotiated serializer of the REST client under the
// dynamic client: it hands every object of a watch to decode as the bytes that
// came in, so that nothing on the way builds map[string]any.
//
// It reads JSON only. Objects are stored and served as JSON; asking for CBOR
// would mean to translate each of them.
type rawSerializer struct {
	decode func(raw []byte) (*cache.Object, error)
}

var _ runtime.NegotiatedSerializer = rawSerializer{}

func (s rawSerializer) SupportedMediaTypes() []runtime.SerializerInfo {
	return []runtime.SerializerInfo{{
		MediaType:        runtime.ContentTypeJSON,
		MediaTypeType:    "application",
		MediaTypeSubType: "json",
		EncodesAsText:    true,
		Serializer:       objectDecoder{s.decode},
		StreamSerializer: &runtime.StreamSerializerInfo{
			EncodesAsText: true,
			Serializer:    frameDecoder{},
			Framer:        framer{},
		},
	}}
}

func (s rawSerializer) EncoderForVersion(e runtime.Encoder, _ runtime.GroupVersioner) runtime.Encoder {
	return e
}

func (s rawSerializer) DecoderToVersion(d runtime.Decoder, _ runtime.GroupVersioner) runtime.Decoder {
	return d
}

// framer splits a watch stream into its events.
type framer struct{}

func (framer) NewFrameReader(r io.ReadCloser) io.ReadCloser {
	return rawjson.NewFrameReader(r, maxObjectBytes)
}
func (framer) NewFrameWriter(w io.Writer) io.Writer { return w }

var errReadOnly = errors.New("this client only reads")

// frameDecoder finds the type and the object of a watch event without decoding
// either. The object aliases the frame: it is decoded before the next read.
type frameDecoder struct{}

func (frameDecoder) Decode(frame []byte, _ *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	event, ok := into.(*metav1.WatchEvent)
	if !ok {
		return nil, nil, fmt.Errorf("decode watch event into %T", into)
	}
	kind, object, err := rawjson.ParseWatchEvent(frame)
	if err != nil {
		return nil, nil, fmt.Errorf("decode watch event: %w", err)
	}
	event.Type, event.Object.Raw = kind, object
	return event, nil, nil
}

func (frameDecoder) Encode(runtime.Object, io.Writer) error { return errReadOnly }
func (frameDecoder) Identifier() runtime.Identifier         { return "informerd-frame" }

// objectDecoder turns the object of an event into an *item, or into a
// *metav1.Status for errors. An object that cannot be decoded becomes an item
// with err set rather than an error: an error would end the stream, and the
// same object would end the next one too.
type objectDecoder struct {
	decode func(raw []byte) (*cache.Object, error)
}

func (d objectDecoder) Decode(raw []byte, _ *schema.GroupVersionKind, _ runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, err := d.decode(raw)
	if err == nil {
		return &item{obj: obj, resourceVersion: obj.ResourceVersion()}, nil, nil
	}
	return decodeOther(raw, err)
}

// decodeOther reads what is no object of the resource: a bookmark (which has a
// resourceVersion and no name), a Status, or something that is broken.
func decodeOther(raw []byte, cause error) (runtime.Object, *schema.GroupVersionKind, error) {
	var other struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        struct {
			Name            string            `json:"name"`
			ResourceVersion string            `json:"resourceVersion"`
			Annotations     map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &other); err != nil {
		return &item{err: cause}, nil, nil
	}
	if other.Kind == "Status" && other.APIVersion == "v1" {
		status := &metav1.Status{}
		if err := json.Unmarshal(raw, status); err != nil {
			return nil, nil, fmt.Errorf("decode status: %w", err)
		}
		return status, nil, nil
	}
	it := &item{resourceVersion: other.Metadata.ResourceVersion}
	if other.Metadata.Name != "" || it.resourceVersion == "" {
		it.err = cause
		return it, nil, nil
	}
	it.age = toldAge(other.Metadata.Annotations)
	_, it.copied = other.Metadata.Annotations[cache.AgeAnnotation]
	it.initialEventsEnd = other.Metadata.Annotations[metav1.InitialEventsAnnotationKey] == "true"
	return it, nil, nil
}

func (objectDecoder) Encode(runtime.Object, io.Writer) error { return errReadOnly }
func (objectDecoder) Identifier() runtime.Identifier         { return "informerd-raw" }

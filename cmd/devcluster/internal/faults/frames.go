package faults

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const protobufType = "application/vnd.kubernetes.protobuf"

// protobufMagic begins every object in protobuf.
var protobufMagic = []byte("k8s\x00")

// maxFrame bounds what a broken length makes the proxy wait for.
const maxFrame = 64 << 20

// frame is one event of a watch as it is on the wire.
type frame struct {
	data     []byte
	payload  int // where it begins; JSON frames end with a line break after it
	protobuf bool
	kind     string // ADDED, ...; empty if it cannot be read
}

// isObject says whether the event is one that rules count.
func (f *frame) isObject() bool {
	return f.kind == "ADDED" || f.kind == "MODIFIED" || f.kind == "DELETED"
}

// frameReader splits a watch into frames.
func frameReader(body io.Reader, contentType string) func() (frame, error) {
	r := bufio.NewReader(body)
	if strings.HasPrefix(contentType, protobufType) {
		return func() (frame, error) { return readProtobuf(r) }
	}
	return func() (frame, error) { return readJSON(r) }
}

func readJSON(r *bufio.Reader) (frame, error) {
	line, err := r.ReadBytes('\n')
	if len(line) == 0 {
		return frame{}, err
	}
	var event struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(line, &event)
	return frame{data: line, kind: event.Type}, nil
}

func readProtobuf(r *bufio.Reader) (frame, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(r, head); err != nil {
		return frame{}, err
	}
	size := binary.BigEndian.Uint32(head)
	if size > maxFrame {
		return frame{}, fmt.Errorf("a frame of %d bytes", size)
	}
	data := append(head, make([]byte, size)...)
	if _, err := io.ReadFull(r, data[4:]); err != nil {
		return frame{}, io.ErrUnexpectedEOF
	}
	var event metav1.WatchEvent
	_ = event.Unmarshal(data[4:])
	return frame{data: data, payload: 4, protobuf: true, kind: event.Type}, nil
}

// newFrame encodes an event. The object is JSON, or protobuf with its magic.
func newFrame(kind string, object []byte, protobuf bool) (frame, error) {
	event := metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: object}}
	if !protobuf {
		data, err := json.Marshal(event)
		return frame{data: append(data, '\n'), kind: kind}, err
	}
	payload, err := event.Marshal()
	data := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))
	return frame{data: append(data, payload...), payload: 4, protobuf: true, kind: kind}, err
}

// protobufObject wraps a message as API servers do.
func protobufObject(apiVersion, kind string, message interface{ Marshal() ([]byte, error) }) ([]byte, error) {
	raw, err := message.Marshal()
	if err != nil {
		return nil, err
	}
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
	data, err := unknown.Marshal()
	return append(bytes.Clone(protobufMagic), data...), err
}

// raise returns the bookmark with its version raised by add.
func (f *frame) raise(add int64) (frame, error) {
	if !f.protobuf {
		return f.raiseJSON(add)
	}
	var event metav1.WatchEvent
	if err := event.Unmarshal(f.data[f.payload:]); err != nil {
		return frame{}, err
	}
	raw, ok := bytes.CutPrefix(event.Object.Raw, protobufMagic)
	if !ok {
		return frame{}, errors.New("the bookmark is no object")
	}
	var unknown runtime.Unknown
	if err := unknown.Unmarshal(raw); err != nil {
		return frame{}, err
	}
	// All kinds begin with their metadata; a bookmark has nothing else.
	var object metav1.PartialObjectMetadata
	if err := object.Unmarshal(unknown.Raw); err != nil {
		return frame{}, err
	}
	var err error
	if object.ResourceVersion, err = raised(object.ResourceVersion, add); err != nil {
		return frame{}, err
	}
	data, err := protobufObject(unknown.APIVersion, unknown.Kind, &object)
	if err != nil {
		return frame{}, err
	}
	return newFrame(event.Type, data, true)
}

func (f *frame) raiseJSON(add int64) (frame, error) {
	var event struct {
		Object map[string]any `json:"object"`
	}
	decoder := json.NewDecoder(bytes.NewReader(f.data))
	decoder.UseNumber()
	if err := decoder.Decode(&event); err != nil {
		return frame{}, err
	}
	metadata, _ := event.Object["metadata"].(map[string]any)
	version, _ := metadata["resourceVersion"].(string)
	version, err := raised(version, add)
	if err != nil {
		return frame{}, err
	}
	metadata["resourceVersion"] = version
	object, err := json.Marshal(event.Object)
	if err != nil {
		return frame{}, err
	}
	return newFrame(f.kind, object, false)
}

func raised(version string, add int64) (string, error) {
	n, err := strconv.ParseInt(version, 10, 64)
	return strconv.FormatInt(n+add, 10), err
}

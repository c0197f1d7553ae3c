package cloudevent

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/informerd/informerd/server/handlers"
)

// New is the event that d is.
func New(d *handlers.Delivery) (*event.Event, error) {
	data, err := Data(d)
	if err != nil {
		return nil, err
	}
	e := event.New(event.CloudEventsVersionV1)
	e.SetID(d.ID)
	e.SetSource("/clusters/" + url.PathEscape(d.Cluster) + "/handlers/" + url.PathEscape(d.Handler))
	e.SetType("io.informerd.object." + string(d.Transition))
	e.SetSubject(Subject(d))
	if !d.Since.IsZero() {
		e.SetTime(d.Since)
	}
	e.SetExtension("sequence", Sequence(d.Sequence))
	e.SetExtension("attempt", int32(min(d.Attempt, math.MaxInt32)))
	if d.ResourceVersion != "" {
		e.SetExtension("resourceversion", d.ResourceVersion)
	}
	if err := e.SetData(event.ApplicationJSON, data); err != nil {
		return nil, fmt.Errorf("make a CloudEvent: %w", err)
	}
	e.DataBase64 = false // the SDK takes bytes for binary data, and these are JSON
	if err := e.Validate(); err != nil {
		return nil, fmt.Errorf("make a CloudEvent: %w", err)
	}
	return &e, nil
}

// Structured is d as one JSON document.
func Structured(d *handlers.Delivery) ([]byte, error) {
	e, err := New(d)
	if err != nil {
		return nil, err
	}
	return e.MarshalJSON()
}

// Subject names the object within its cluster: deployments.apps/shop/web, or nodes/n1.
func Subject(d *handlers.Delivery) string {
	subject := d.GVR.GroupResource().String() + "/"
	if d.Namespace != "" {
		subject += d.Namespace + "/"
	}
	return subject + d.Name
}

// Sequence is n with as many digits as the largest has, so that the order of the texts is
// that of the numbers: the extension "sequence" must be ordered so.
func Sequence(n uint64) string { return fmt.Sprintf("%020d", n) }

// head is the data without the object, which is appended as the bytes that it is.
type head struct {
	Transition      handlers.Transition `json:"transition"`
	Cluster         string              `json:"cluster"`
	Group           string              `json:"group"`
	Version         string              `json:"version"`
	Resource        string              `json:"resource"`
	Kind            string              `json:"kind"`
	Namespace       string              `json:"namespace"`
	Name            string              `json:"name"`
	UID             string              `json:"uid"`
	ResourceVersion string              `json:"resourceVersion"`
}

// Data is the data of the event: what became of the object, and the object.
func Data(d *handlers.Delivery) ([]byte, error) {
	b, err := json.Marshal(head{
		d.Transition, d.Cluster, d.GVR.Group, d.GVR.Version, d.GVR.Resource, d.Kind,
		d.Namespace, d.Name, d.UID, d.ResourceVersion,
	})
	if err != nil {
		return nil, fmt.Errorf("make the data of a CloudEvent: %w", err)
	}
	object := []byte(d.Object)
	if len(object) == 0 {
		object = []byte("null")
	}
	b = append(b[:len(b)-1], `,"object":`...)
	return append(append(b, object...), '}'), nil
}

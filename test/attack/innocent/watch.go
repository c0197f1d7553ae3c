package innocent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// eventTimeout is how long an event is waited for before it counts as missed.
const eventTimeout = 30 * time.Second

func (u *User) watched() string {
	return u.core() + "?watch=1&fieldSelector=" + url.QueryEscape("metadata.name="+u.Beat)
}

// open begins a watch, and leaves it when it has.
func (u *User) open(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := u.do(ctx, u.watched())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _, err = nextBeat(json.NewDecoder(resp.Body))
	return err
}

// follow is one watch that has to last. If it ends it is begun anew, which is a failure.
func (u *User) follow(ctx context.Context) {
	for ctx.Err() == nil {
		err := u.watch(ctx)
		if ctx.Err() != nil {
			return
		}
		u.time(ctx, Event, func() error { return fmt.Errorf("the watch ended: %w", err) })
		pause(ctx, time.Second)
	}
}

func (u *User) watch(ctx context.Context) error {
	resp, err := u.do(ctx, u.watched())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for events := json.NewDecoder(resp.Body); ; {
		typ, beat, err := nextBeat(events)
		switch {
		case err != nil:
			return err
		case typ != "MODIFIED" && typ != "ADDED":
			return fmt.Errorf("an event %s", typ)
		}
		select {
		case u.beats <- beat:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func nextBeat(events *json.Decoder) (typ, beat string, err error) {
	var e struct {
		Type   string
		Object struct {
			Message string // of an ERROR
			Data    map[string]string
		}
	}
	if err := events.Decode(&e); err != nil {
		return "", "", err
	}
	if e.Type == "ERROR" {
		return "", "", errors.New(e.Object.Message)
	}
	return e.Type, e.Object.Data["beat"], nil
}

// beat changes the object that is watched, and waits until the watch tells of it.
func (u *User) beat(ctx context.Context) {
	value := strconv.FormatInt(time.Now().UnixNano(), 10)
	u.time(ctx, Event, func() error {
		patch, began := fmt.Appendf(nil, `{"data":{"beat":%q}}`, value), time.Now()
		if _, err := u.Cluster.Resource(configMaps).Namespace(u.Namespace).Patch(ctx, u.Beat, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("change what is watched: %w", err)
		}
		u.book.Load().answered(ServerChange, time.Since(began))
		missed := time.NewTimer(eventTimeout)
		defer missed.Stop()
		for {
			select {
			case told := <-u.beats:
				if told == value {
					return nil
				}
			case <-missed.C:
				return fmt.Errorf("not told within %v", eventTimeout)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
}

// serverGet gets an object of the API server itself.
func (u *User) serverGet(ctx context.Context) error {
	_, err := u.Cluster.Resource(configMaps).Namespace(u.Namespace).Get(ctx, u.Map(0), metav1.GetOptions{})
	return err
}

package sse

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	stream := ": a comment\n\nid: 1\nevent: x\ndata: {}\n\ndata: a\ndata: b\n\n\nid: 3\n\nid: 4\ndata: cut"
	var told []string
	err := Read(strings.NewReader(stream), func(id, data string) error {
		told = append(told, id+" "+data)
		return nil
	})
	if want := []string{"1 {}", " ab"}; !errors.Is(err, io.EOF) || !slices.Equal(told, want) {
		t.Errorf("told %q and then %v, want %q and the end", told, err, want)
	}
	if err := Read(strings.NewReader(stream), func(string, string) error { return errors.ErrUnsupported }); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%v instead of the error of an event", err)
	}
}

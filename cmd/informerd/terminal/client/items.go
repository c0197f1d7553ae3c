package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
)

// Items asks for a list and reads it while it comes in: item is called before each of its
// items and decodes one, and what else has a name in members is decoded there. What comes
// behind the items is known only after.
func (c *Client) Items(ctx context.Context, path string, query url.Values, members map[string]any, item func(*json.Decoder) error) error {
	resp, err := c.Get(ctx, path, query)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	l := listReader{Decoder: json.NewDecoder(bufio.NewReaderSize(resp.Body, 256<<10)), members: members, item: item}
	if err := l.read(); err != nil {
		return c.Broken(ctx, err)
	}
	return nil
}

type listReader struct {
	*json.Decoder
	members map[string]any
	item    func(*json.Decoder) error
}

func (l *listReader) read() error {
	if err := l.delimiter('{'); err != nil {
		return err
	}
	for l.More() {
		name, err := l.Token()
		if err != nil {
			return err
		}
		if err := l.member(name); err != nil {
			return err
		}
	}
	return l.delimiter('}')
}

func (l *listReader) member(name json.Token) error {
	text, _ := name.(string)
	if text == "items" {
		return l.items()
	}
	if into, ok := l.members[text]; ok {
		return l.Decode(into)
	}
	var skipped json.RawMessage
	return l.Decode(&skipped)
}

func (l *listReader) items() error {
	if err := l.delimiter('['); err != nil {
		return err
	}
	for l.More() {
		if err := l.item(l.Decoder); err != nil {
			return err
		}
	}
	return l.delimiter(']')
}

// delimiter reads one sign. A list that is cut off ends in none.
func (l *listReader) delimiter(want json.Delim) error {
	got, err := l.Token()
	switch {
	case err == io.EOF:
		return io.ErrUnexpectedEOF
	case err != nil:
		return err
	case got != want:
		return fmt.Errorf("%v instead of %v", got, want)
	}
	return nil
}

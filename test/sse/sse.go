// Package sse reads streams of server-sent events, as browsers' EventSource does.
package sse

import (
	"bufio"
	"io"
	"strings"
)

// bufferSize is what is read at once, in bytes; lines may be longer.
const bufferSize = 256 << 10

// Read calls event with the id and the data of one event after the other, id "" for
// one without. It returns the first error of event or of the stream, io.EOF for its
// end; an event that the stream ends in is not told.
func Read(stream io.Reader, event func(id, data string) error) error {
	lines := bufio.NewReaderSize(stream, bufferSize)
	var id, data string
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		line = strings.TrimSuffix(line, "\n")
		switch name, value, _ := strings.Cut(line, ": "); {
		case line == "":
			if data != "" {
				if err := event(id, data); err != nil {
					return err
				}
			}
			id, data = "", ""
		case name == "id":
			id = value
		case name == "data":
			data += value
		}
	}
}

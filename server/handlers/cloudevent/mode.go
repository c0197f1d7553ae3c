package cloudevent

import "fmt"

// Mode is how an event is put into a message.
type Mode string

const (
	// ModeStructured: the event is one JSON document, which is the message. It is the default.
	ModeStructured Mode = "structured"
	// ModeBinary: the message is the data, the attributes are headers.
	ModeBinary Mode = "binary"
)

// Check says what is wrong with m.
func (m Mode) Check() error {
	switch m {
	case "", ModeStructured, ModeBinary:
		return nil
	}
	return fmt.Errorf("%q is none: %s or %s", string(m), ModeStructured, ModeBinary)
}

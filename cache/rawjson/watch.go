package rawjson

import (
	"errors"
	"fmt"
)

// ParseWatchEvent splits a frame of a watch, {"type":"ADDED","object":{...}},
// with keys in any order and unknown ones ignored. object aliases frame. Only
// its end is looked for: it is not validated before it is Run.
func ParseWatchEvent(frame []byte) (typ string, object []byte, err error) {
	i := skipSpace(frame, 0)
	if i >= len(frame) || frame[i] != '{' {
		return "", nil, fmt.Errorf("parse watch event: %w", scanError(frame, fail(notObject, i)))
	}
	i = skipSpace(frame, i+1)
	for i < len(frame) && frame[i] == '"' {
		key := i
		if i = skipString(frame, i+1); i < 0 {
			break
		}
		name := frame[key+1 : i-1]
		if i = skipColon(frame, i); i < 0 {
			break
		}
		value := i
		if i = skipMember(frame, i); i < 0 {
			break
		}
		if !plainText(name) {
			name = appendText(nil, name)
		}
		switch string(name) {
		case "type":
			if typ, err = eventType(frame[value:i]); err != nil {
				return "", nil, err
			}
		case "object":
			object = frame[value:i]
		}
		i = skipSpace(frame, i)
		if i < len(frame) && frame[i] == '}' {
			if i = skipSpace(frame, i+1); i < len(frame) {
				break
			}
			if typ == "" || object == nil {
				return "", nil, errors.New("parse watch event: type or object is missing")
			}
			return typ, object, nil
		}
		if i >= len(frame) || frame[i] != ',' {
			break
		}
		i = skipSpace(frame, i+1)
	}
	if i >= 0 {
		i = fail(badSyntax, i)
	}
	return "", nil, fmt.Errorf("parse watch event: %w", scanError(frame, i))
}

// skipMember passes a value: an object by its braces alone, because whoever
// reads the object validates it.
func skipMember(frame []byte, i int) int {
	if i < len(frame) && frame[i] == '{' {
		var b boundary
		n, done := b.feed(frame[i:])
		if !done {
			return fail(badSyntax, len(frame))
		}
		return i + n
	}
	return skipValue(frame, i, 1)
}

// eventType reads the type without allocating for the five that exist.
func eventType(raw []byte) (string, error) {
	switch string(raw) {
	case `"ADDED"`:
		return "ADDED", nil
	case `"MODIFIED"`:
		return "MODIFIED", nil
	case `"DELETED"`:
		return "DELETED", nil
	case `"BOOKMARK"`:
		return "BOOKMARK", nil
	case `"ERROR"`:
		return "ERROR", nil
	}
	if raw[0] != '"' {
		return "", fmt.Errorf("parse watch event: type is %.40s, not a string", raw)
	}
	return string(appendText(nil, raw[1:len(raw)-1])), nil
}

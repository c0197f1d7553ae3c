package reply

import "encoding/json"

// AppendText appends a string of JSON, as JSON does.
func AppendText(dst []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, err := JSON(text, false)
			if err != nil {
				panic(err) // a string
			}
			return append(dst, quoted...)
		}
	}
	return append(append(append(dst, '"'), text...), '"')
}

// AppendValue appends a value as JSON does, the simple ones without reflection.
func AppendValue(dst []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case string:
		return AppendText(dst, v), nil
	case json.RawMessage:
		return AppendRaw(dst, v)
	}
	text, err := JSON(value, false)
	return append(dst, text...), err
}

// AppendRaw appends a value that was read from JSON, without the spaces in it.
func AppendRaw(dst []byte, value json.RawMessage) ([]byte, error) {
	if len(value) > 0 && value[0] != '{' && value[0] != '[' {
		return append(dst, value...), nil // a scalar has nothing in it that could be left out
	}
	text, err := JSON(value, false)
	return append(dst, text...), err
}

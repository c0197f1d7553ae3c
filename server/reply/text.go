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
		// A scalar that was read from JSON has nothing in it that could be left out.
		if len(v) > 0 && v[0] != '{' && v[0] != '[' {
			return append(dst, v...), nil
		}
	}
	text, err := JSON(value, false)
	return append(dst, text...), err
}

package rawjson

// Member finds the value that names lead to, one object inside the other: it is
// src[start:end]. Of a name that occurs twice the last one counts. ok is false
// where there is no such value. src must be valid JSON.
func Member(src []byte, names ...string) (start, end int, ok bool) {
	at := NewLazy(src)
	if len(at) == 0 {
		return 0, 0, false
	}
	for _, name := range names {
		if at, ok = at.member(name); !ok {
			return 0, 0, false
		}
	}
	start = len(src) - len(at)
	return start, start + len(at.Raw()), true
}

// member is the value of the last member of that name.
func (l Lazy) member(name string) (value Lazy, ok bool) {
	if l[0] != '{' {
		return nil, false
	}
	for parts := l.Parts(); ; {
		key, plain, v, more := parts.Next()
		switch {
		case !more:
			return value, ok
		case string(key) == name, !plain && KeyText(key, plain) == name:
			value, ok = v, true
		}
	}
}

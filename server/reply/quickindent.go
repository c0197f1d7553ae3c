package reply

import "bytes"

// quickIndented is what json.Indent makes of valid JSON without spaces, which is what is
// held of objects, in a third of the time: it copies what is between two brackets or commas
// instead of looking at each byte of it. ok is false where it cannot say, or the indentation
// would be more than limit.
func quickIndented(dst, src []byte, prefix string, limit int) (_ []byte, ok bool) {
	start, size, depth := len(dst), 0, 0
	for i := 0; i < len(src) && size <= limit; {
		switch c := src[i]; c {
		case '"':
			end := endOfString(src, i)
			if end < 0 {
				return dst[:start], false
			}
			dst = append(dst, src[i:end]...)
			i = end
			continue
		case '{', '[':
			if i+1 < len(src) && src[i+1] == c+2 { // the bracket that closes it
				dst = append(dst, c, c+2)
				size += 2*(len(prefix)+depth*len(indent)) + len(indent)
				i += 2
				continue
			}
			depth++
			dst = appendNewline(append(dst, c), prefix, depth)
		case '}', ']':
			if depth--; depth < 0 {
				return dst[:start], false
			}
			dst = append(appendNewline(dst, prefix, depth), c)
		case ',':
			dst = appendNewline(append(dst, c), prefix, depth)
		case ':':
			dst = append(dst, ": "...)
			i++
			continue
		default:
			end := i
			for end < len(src) && src[end] > ' ' && src[end] != ',' && src[end] != '}' && src[end] != ']' {
				end++
			}
			if end == i {
				return dst[:start], false // a space
			}
			dst = append(dst, src[i:end]...)
			i = end
			continue
		}
		size += len(prefix) + depth*len(indent)
		i++
	}
	if depth != 0 || size > limit {
		return dst[:start], false
	}
	return dst, true
}

// endOfString is where the string that begins at i ends, -1 if it does not.
func endOfString(src []byte, i int) int {
	for from := i + 1; ; {
		n := bytes.IndexByte(src[from:], '"')
		if n < 0 {
			return -1
		}
		end := from + n
		slashes := 0
		for src[end-1-slashes] == '\\' {
			slashes++
		}
		if from = end + 1; slashes%2 == 0 {
			return from
		}
	}
}

const manySpaces = "                                                                "

func appendNewline(dst []byte, prefix string, depth int) []byte {
	dst = append(append(dst, '\n'), prefix...)
	n := depth * len(indent)
	for ; n > len(manySpaces); n -= len(manySpaces) {
		dst = append(dst, manySpaces...)
	}
	return append(dst, manySpaces[:n]...)
}

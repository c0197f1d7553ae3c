package delta

// Part is a piece that an object has in common with its sibling: Len bytes, which begin at At in
// the object and at From in the sibling.
type Part struct{ At, From, Len int }

// Parts appends pieces that an object has in common with its sibling, as s says, which Apply must
// have applied. They are in the order of both, and do not overlap. They need not be all: of two
// pieces that are in another order in the sibling one is left out.
func (s *Steps) Parts(dst []Part) []Part {
	first := len(dst)
	at, from := 0, 0 // where the object and the sibling go on
	for _, step := range s.steps {
		at, from = at+int(step.spelled), from+int(step.spelled)
		if !step.own {
			from += int(step.where)
			dst = addPart(dst, first, Part{at, from, int(step.copied)})
		}
		at, from = at+int(step.copied), from+int(step.copied)
	}
	return dst
}

// addPart adds p to the parts from first on.
func addPart(parts []Part, first int, p Part) []Part {
	for len(parts) > first {
		last := &parts[len(parts)-1]
		twice := last.From + last.Len - p.From // bytes of the sibling
		switch {
		case twice < 0:
			return append(parts, p)
		case twice < p.Len && p.From >= last.From: // as where it is 11 in the sibling and 111 in the object
			p = Part{p.At + twice, p.From + twice, p.Len - twice}
			if last.At+last.Len < p.At {
				return append(parts, p)
			}
			last.Len += p.Len
			return parts
		case p.Len <= last.Len:
			return parts
		}
		parts = parts[:len(parts)-1]
	}
	return append(parts, p)
}

package health

// said is what a status says of what most rules look at. It is found in one pass, since the
// status of a pod is long, and would be passed five times for its phase, the generation that it
// is about, its conditions and its containers.
type said struct {
	read                            bool
	observed                        value // observedGeneration
	phase, reason, message, started value
	conditions                      list[condition]
	init, containers                list[container]
}

// statusSaid is what the status of o says. It is read when it is first asked for.
func (o *object) statusSaid() *said {
	if !o.said.read {
		o.said.parse(o.status)
	}
	return &o.said
}

// parse returns how long the status is, 0 if that is not known.
func (s *said) parse(status value) (length int) {
	s.read = true
	return passed(status, func(key []byte, v value) (length int) {
		switch string(key) {
		case "observedGeneration":
			s.observed = v
		case "phase":
			s.phase = v
		case "reason":
			s.reason = v
		case "message":
			s.message = v
		case "startTime":
			s.started = v
		case "conditions":
			return s.conditions.parse(v, (*condition).parse)
		case "initContainerStatuses":
			return s.init.parse(v, parseInit)
		case "containerStatuses":
			return s.containers.parse(v, (*container).parse)
		}
		return 0
	})
}

// emptied has nothing of s but its memory.
func (s *said) emptied() said {
	return said{conditions: s.conditions.emptied(), init: s.init.emptied(), containers: s.containers.emptied()}
}

// forget leaves nothing of what was read in the memory of s.
func (s *said) forget() {
	s.conditions.forget()
	s.init.forget()
	s.containers.forget()
}

func (l *list[E]) forget() { clear(l.all[:cap(l.all)]) }

// list is an array of objects: where it begins, and what its elements are, if they are not more
// than mostListed. Those of a longer one are read again for each who looks at them, as objects
// that are up to no good have hundreds of thousands.
type list[E any] struct {
	array value
	all   []E
	long  bool
}

const mostListed = 16

// parse finds the elements, of which parse returns how long each is. It returns how long the
// array is, 0 if that is not known.
func (l *list[E]) parse(array value, parse func(e *E, v value) (length int)) (length int) {
	*l = list[E]{array: array, all: l.all[:0]}
	if l.all == nil {
		l.all = make([]E, 0, mostListed/2)
	}
	return walked(array, func(v value) (int, bool) {
		if l.long = len(l.all) == mostListed; l.long {
			return 0, false
		}
		var none E
		l.all = append(l.all, none) // there first, so that it has no memory of its own
		return parse(&l.all[len(l.all)-1], v), true
	})
}

// visit visits the elements, until visit returns false, which it returns then. Each is valid
// until the next one.
func (l *list[E]) visit(parse func(e *E, v value) (length int), visit func(e *E) bool) (more bool) {
	more = true
	if !l.long {
		for i := 0; i < len(l.all) && more; i++ {
			more = visit(&l.all[i])
		}
		return more
	}
	walked(l.array, func(v value) (int, bool) {
		var e E
		length := parse(&e, v)
		more = visit(&e)
		return length, more
	})
	return more
}

func (l *list[E]) emptied() list[E] { return list[E]{all: l.all[:0]} }

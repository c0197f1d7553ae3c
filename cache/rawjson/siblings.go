package rawjson

// Siblings reads objects as Program.Run does, and quicker where one is like one of those before: of
// that it is known where all that is wanted stands, see outline. It belongs to one goroutine. The zero
// Siblings is ready.
type Siblings struct {
	outline outline
	doc     Document // of its text
	program *Program // that read it
	worth   worth
}

// Run is p.Run.
func (s *Siblings) Run(p *Program, src []byte, doc *Document) error {
	if s.program == p && s.outline.begin().feed(src) == alike && s.outline.at == len(src) && s.follow(src, doc) {
		s.worth.won()
		return nil
	}
	err := p.Run(src, doc)
	if err == nil && p.alike && len(src) <= maxInsides && s.worth.another() {
		s.take(p, src)
	}
	return err
}

// take has what comes compared with src, which is valid. It does not where something else than places
// depends on what a string says.
func (s *Siblings) take(p *Program, src []byte) {
	s.program = nil
	o, d := &s.outline, &s.doc
	o.text, d.notePassed = append(o.text[:0], src...), true
	if p.Run(o.text, d) != nil || d.start > 0 || d.end < len(src) || d.careful || d.bookmark || len(d.arena) > 0 {
		return
	}
	if o.take(o.text, d.passed...) {
		s.program = p
	}
}

// follow makes doc that of src, which is alike. It reports false where it is not what Run would make.
func (s *Siblings) follow(src []byte, doc *Document) bool {
	o := &s.outline
	doc.copyOf(&s.doc, src)
	doc.eachText(func(text []byte, isString bool) []byte {
		start := cap(o.text) - cap(text)
		text = src[o.startOf(start):o.endOf(start+len(text))]
		return doc.text(text, !isString)
	})
	for i, e := range doc.edits {
		doc.edits[i].start, doc.edits[i].end = o.endOf(e.start), o.endOf(e.end)
	}
	doc.end = len(src)
	// Those that are empty are not kept.
	return len(doc.Kind) == 0 == (len(s.doc.Kind) == 0) && len(doc.APIVersion) == 0 == (len(s.doc.APIVersion) == 0)
}

// copyOf makes d what o is, of src, but for texts, which are still those of o.
func (d *Document) copyOf(o *Document, src []byte) {
	labels, owners, values := append(d.Labels[:0], o.Labels...), append(d.Owners[:0], o.Owners...), append(d.Values[:0], o.Values...)
	edits, arena, last, passed := append(d.edits[:0], o.edits...), d.arena[:0], d.last[:0], d.passed[:0]
	*d = *o
	d.Labels, d.Owners, d.Values, d.edits, d.arena, d.last, d.src = labels, owners, values, edits, arena, last, src
	d.passed, d.notePassed = passed, false
}

// eachText puts what do returns in the place of each text of d that is there, in no particular order;
// isString is false for that of a value that is no string.
func (d *Document) eachText(do func(text []byte, isString bool) []byte) {
	put := func(text *[]byte, isString bool) {
		if *text != nil {
			*text = do(*text, isString)
		}
	}
	for _, text := range [...]*[]byte{&d.APIVersion, &d.Kind, &d.Namespace, &d.Name, &d.UID, &d.ResourceVersion, &d.CreationTimestamp, &d.DeletionTimestamp} {
		put(text, true)
	}
	for i := range d.Labels {
		put(&d.Labels[i].Key, true)
		put(&d.Labels[i].Value, true)
	}
	for i := range d.Owners {
		o := &d.Owners[i]
		put(&o.UID, true)
		put(&o.Kind, true)
		put(&o.Name, true)
		put(&o.APIVersion, true)
	}
	for i := range d.Values {
		put(&d.Values[i].Text, d.Values[i].Kind == String)
	}
}

// worth decides what is compared with: what has turned out to be like others is replaced by the first
// that is not like it, and otherwise ever more of them are left out. To take one costs as much as it
// saves with the next one or two: objects that have no siblings, and those between whose siblings
// others come, cost little more than reading them.
type worth struct {
	wins    int // since the last one was taken
	passed  int // how many have not been taken since
	patient int // how many are not to be
}

const (
	// enoughWins is how many were alike where it was worth it to take one.
	enoughWins = 3
	// maxPatient is after how many objects another one is tried at the latest.
	maxPatient = 63
)

// won notes that one was alike.
func (w *worth) won() { w.wins++ }

// another reports whether one that was not alike is to be taken.
func (w *worth) another() bool {
	if w.wins >= enoughWins {
		w.patient = 0
	} else if w.passed < w.patient {
		w.passed++
		return false
	} else {
		w.patient = min(2*w.patient+1, maxPatient)
	}
	w.wins, w.passed = 0, 0
	return true
}

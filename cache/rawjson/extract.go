package rawjson

import "sync"

// Extractor evaluates paths on an object that is known to be valid JSON, as all
// that Program.Run has accepted is. It is immutable and safe for concurrent use.
type Extractor struct {
	program *Program
}

var documents = sync.Pool{New: func() any { return new(Document) }}

// CompileExtractor makes an Extractor for paths; Value.Path is the position in
// paths.
func CompileExtractor(paths []Path) (*Extractor, error) {
	root := &branch{}
	single := 0
	for i, p := range paths {
		if err := checkNamed(p); err != nil {
			return nil, err
		}
		b := root.at(p.steps())
		b.extract = append(b.extract, i)
		if p.Multi() {
			single = -1 << 31
		}
		single++
	}
	n, err := resolve(root)
	if err != nil {
		return nil, err
	}
	return &Extractor{&Program{root: n, single: single, valid: true}}, nil
}

// Unique returns an Extractor that takes for granted that no object in src has a
// key twice. It stops reading once every path has its value, if none has [*], or has been
// passed, and of an object inside in which all wanted keys have been it only looks for the
// end.
// Kubernetes API servers write such JSON; an aggregated API server need not.
func (e *Extractor) Unique() *Extractor {
	p := *e.program
	p.unique = true
	return &Extractor{&p}
}

// Each calls yield for every value at the paths, in the order of the document,
// until yield returns false. A Value is valid during the call only. Of a src that
// is not valid JSON the values are any, or there is an error.
func (e *Extractor) Each(src []byte, yield func(Value) bool) error {
	d := documents.Get().(*Document)
	defer d.release()
	if err := e.program.Run(src, d); err != nil {
		return err
	}
	for _, v := range d.Values {
		if !yield(v) {
			return nil
		}
	}
	return nil
}

// release gives d back to the pool without holding on to the source.
func (d *Document) release() {
	clear(d.Values[:cap(d.Values)])
	d.reset(nil)
	documents.Put(d)
}

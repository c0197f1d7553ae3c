package scalar

// Range is an interval of Amounts, of Times or of strings in the order of their
// bytes. The zero Range has no class and is none.
type Range struct {
	// Class is Amounts, Times or Texts.
	Class Class
	// Low and High are nil where there is no bound.
	Low, High *Bound
}

// Bound is an end of a Range: Text of one of strings, Point of the others.
type Bound struct {
	Point Point
	Text  string
	// Open: the bound itself is outside.
	Open bool
}

// Prefixed is the Range of the strings that begin with prefix.
func Prefixed(prefix string) Range {
	r := Range{Class: Texts, Low: &Bound{Text: prefix}}
	for end := []byte(prefix); len(end) > 0; end = end[:len(end)-1] {
		if end[len(end)-1]++; end[len(end)-1] != 0 {
			r.High = &Bound{Text: string(end), Open: true}
			break
		}
	}
	return r
}

// HasText reports whether a string is within a Range of strings.
func (r Range) HasText(s string) bool {
	return (r.Low == nil || s > r.Low.Text || s == r.Low.Text && !r.Low.Open) && !r.EndsBeforeText(s)
}

// EndsBeforeText reports that s and whatever is greater is outside.
func (r Range) EndsBeforeText(s string) bool {
	return r.High != nil && (s > r.High.Text || s == r.High.Text && r.High.Open)
}

// Has reports whether a Point is within a Range of its class.
func (r Range) Has(p Point) bool {
	return !r.BeginsAfter(p) && !r.EndsBefore(p)
}

// BeginsAfter reports that p and whatever is less is outside.
func (r Range) BeginsAfter(p Point) bool {
	if r.Low == nil {
		return false
	}
	c := p.Compare(r.Low.Point)
	return c < 0 || c == 0 && r.Low.Open
}

// EndsBefore reports that p and whatever is greater is outside.
func (r Range) EndsBefore(p Point) bool {
	if r.High == nil {
		return false
	}
	c := p.Compare(r.High.Point)
	return c > 0 || c == 0 && r.High.Open
}

// MeetsSecond reports whether some of the second that begins at a Unix time is
// within a Range of Times.
func (r Range) MeetsSecond(unix int64) bool {
	return (r.Low == nil || unix >= r.Low.Point.whole) && !r.EndsBefore(Point{whole: unix, class: Times})
}

// String writes a range as an interval: [ and ] include the bound.
func (r Range) String() string {
	low, high := "(-∞", "∞)"
	if r.Low != nil {
		low = "[" + r.Low.text(r.Class)
		if r.Low.Open {
			low = "(" + r.Low.text(r.Class)
		}
	}
	if r.High != nil {
		high = r.High.text(r.Class) + "]"
		if r.High.Open {
			high = r.High.text(r.Class) + ")"
		}
	}
	return low + "," + high
}

func (b *Bound) text(c Class) string {
	if c == Texts {
		return b.Text
	}
	return b.Point.String()
}

package cache

// items are what a question that reads many objects has to look at: those that have the same
// excerpt in a column are one, and each other one is one of its own. Of an item all is the
// same that the paths of the column lead to. Where there are half as many excerpts as objects, or
// more, every object is an item: to find the same ones would take longer than to look at each.
type items struct {
	objects []*Object
	rows    []uint32  // of objects
	at      *columnAt // nil: no object has an excerpt
	of      []uint32  // the item of each object; nil: every object is one
	first   []uint32  // the first object of each item, if of is there
	known   int       // how many objects have an excerpt in the column
}

// itemsOf are those of objects, which were in these rows when at was taken. It changes neither.
func itemsOf(objects []*Object, rows []uint32, at *columnAt) *items {
	x := &items{objects: objects, rows: rows, at: at}
	if at == nil {
		return x
	}
	if at.distinct(len(objects)) > len(objects)/2 {
		if x.known = at.count(rows); at.distinct(x.known) > len(objects)/2 {
			return x
		}
		x.known = 0
	}
	x.of, x.first = numberSlices.get(len(objects))[:len(objects)], numberSlices.get(len(objects))
	itemOf := numberSlices.zeros(at.texts.len() + 1) // by code, from 1 on
	defer numberSlices.put(itemOf)
	for i, row := range rows {
		code := at.codes.at(row)
		if code > 0 {
			x.known++
		}
		if code > 0 && itemOf[code] > 0 {
			x.of[i] = itemOf[code] - 1
			continue
		}
		x.of[i] = uint32(len(x.first))
		x.first = append(x.first, uint32(i))
		if code > 0 {
			itemOf[code] = uint32(len(x.first))
		}
	}
	return x
}

// release gives back the memory of x, which is of no use afterwards.
func (x *items) release() {
	numberSlices.put(x.of)
	numberSlices.put(x.first)
	*x = items{}
}

// len is how many there are.
func (x *items) len() int {
	if x.of == nil {
		return len(x.objects)
	}
	return len(x.first)
}

// item is that of an object.
func (x *items) item(object int) int {
	if x.of == nil {
		return object
	}
	return int(x.of[object])
}

// object is the first one of an item.
func (x *items) object(item int) int {
	if x.of == nil {
		return item
	}
	return int(x.first[item])
}

// code is the number of the text of an item; 0: it has none.
func (x *items) code(item int) uint32 {
	if x.at == nil {
		return 0
	}
	return x.at.codes.at(x.rows[x.object(item)])
}

// append appends what is read of an item.
func (x *items) append(dst []byte, item int) ([]byte, error) {
	i := x.object(item)
	if x.at == nil {
		return x.objects[i].AppendJSON(dst)
	}
	return x.at.append(dst, x.rows[i], x.objects[i])
}

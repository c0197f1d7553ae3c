package rbac

import "slices"

// granteeID is the position of a grantee in its table.
type granteeID uint32

// grantee is a user or a group that bindings name.
type grantee struct {
	who
	// changed is the turn in which what is granted changed last, or in which the
	// grantee became one.
	changed uint64
	// grants has one for each binding, in no order.
	grants []grant
}

// grant is a role and where it holds: in a namespace, or with spaceID 0 everywhere.
type grant struct {
	space spaceID
	role  roleID
}

// grantees are those of a cluster: the index from whom bindings name to what they
// grant.
type grantees struct {
	all  []grantee
	free []granteeID
	ids  map[who]granteeID
	subjects
}

func newGrantees() grantees {
	return grantees{ids: map[who]granteeID{}, subjects: newSubjects()}
}

// named returns the grantee of a name, new if there is none. One that gets no grant
// must be collected.
func (t *grantees) named(w who, turn uint64) granteeID {
	id, ok := t.ids[w]
	if ok {
		return id
	}
	if last := len(t.free) - 1; last >= 0 {
		id, t.free = t.free[last], t.free[:last]
	} else {
		t.all = append(t.all, grantee{})
		id = granteeID(len(t.all) - 1)
	}
	t.all[id] = grantee{who: w, changed: turn}
	t.ids[w] = id
	return id
}

func (t *grantees) collect(id granteeID) {
	g := &t.all[id]
	if len(g.grants) > 0 {
		return
	}
	delete(t.ids, g.who)
	*g = grantee{}
	t.free = append(t.free, id)
}

// give adds a grant, take takes one such away.
func (t *grantees) give(id granteeID, g grant) {
	t.all[id].grants = append(t.all[id].grants, g)
}

func (t *grantees) take(id granteeID, g grant) {
	grants := t.all[id].grants
	i, last := slices.Index(grants, g), len(grants)-1
	grants[i] = grants[last]
	grants = grants[:last]
	if cap(grants) > 2*len(grants)+8 {
		grants = slices.Clone(grants)
	}
	t.all[id].grants = grants
	t.collect(id)
}

// subjectsID stands for the grantees of a binding. Most bindings have one, which
// needs no list; many have the same ones.
type subjectsID uint32

const (
	nobody subjectsID = 1<<32 - 1
	// oneSubject marks an ID that is the granteeID itself.
	oneSubject subjectsID = 1 << 31
)

// subjects are the lists of those that bindings have in common.
type subjects struct {
	lists []subjectList
	spare []subjectsID
	known map[string]subjectsID // by the IDs, four bytes each
}

type subjectList struct {
	ids      []granteeID
	bindings uint32
}

func newSubjects() subjects { return subjects{known: map[string]subjectsID{}} }

// hold returns the list of some grantees, in order, for one binding more.
func (t *subjects) hold(ids []granteeID) subjectsID {
	switch len(ids) {
	case 0:
		return nobody
	case 1:
		return oneSubject | subjectsID(ids[0])
	}
	id, ok := t.known[listKey(ids)]
	if !ok {
		if last := len(t.spare) - 1; last >= 0 {
			id, t.spare = t.spare[last], t.spare[:last]
		} else {
			t.lists = append(t.lists, subjectList{})
			id = subjectsID(len(t.lists) - 1)
		}
		t.lists[id] = subjectList{ids: slices.Clone(ids)}
		t.known[listKey(ids)] = id
	}
	t.lists[id].bindings++
	return id
}

// drop is for one binding less.
func (t *subjects) drop(id subjectsID) {
	if id == nobody || id&oneSubject != 0 {
		return
	}
	l := &t.lists[id]
	if l.bindings--; l.bindings > 0 {
		return
	}
	delete(t.known, listKey(l.ids))
	*l = subjectList{}
	t.spare = append(t.spare, id)
}

// of lists the grantees behind an ID. It is good until the ID is dropped.
func (t *subjects) of(id subjectsID) []granteeID {
	switch {
	case id == nobody:
		return nil
	case id&oneSubject != 0:
		return []granteeID{granteeID(id &^ oneSubject)}
	default:
		return t.lists[id].ids
	}
}

func listKey(ids []granteeID) string {
	key := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		key = append(key, byte(id), byte(id>>8), byte(id>>16), byte(id>>24))
	}
	return string(key)
}

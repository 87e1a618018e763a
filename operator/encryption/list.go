package encryption

import (
	"fmt"
	"slices"
	"strings"
)

// List is the providers of a configuration: the first writes, all of them read.
type List []Provider

// Of is the list of one type: its keys, the write key first, and clear text for reading at the end. There is always a way to
// read clear text: what was written before anything was encrypted is.
func Of(t Type, keyIDs ...string) List {
	if t == Identity {
		return List{Clear()}
	}
	var l List
	for _, k := range keyIDs {
		l = append(l, Provider{t, k})
	}
	return append(l, Clear())
}

// Writer is the provider that encrypts what is written.
func (l List) Writer() Provider {
	if len(l) == 0 {
		return Clear()
	}
	return l[0]
}

// Has says whether the list can read what p wrote.
func (l List) Has(p Provider) bool { return slices.Contains(l, p) }

// KeyIDs are those of a type, in the order of the list.
func (l List) KeyIDs(t Type) []string {
	var ids []string
	for _, p := range l {
		if p.Type == t {
			ids = append(ids, p.KeyID)
		}
	}
	return ids
}

// Names are those of the providers, in order.
func (l List) Names() []string {
	names := make([]string, 0, len(l))
	for _, p := range l {
		names = append(names, p.Name())
	}
	return names
}

// String is for people.
func (l List) String() string { return strings.Join(l.Names(), ", ") }

// without is what l has and other does not.
func (l List) without(other List) List {
	return slices.DeleteFunc(slices.Clone(l), other.Has)
}

// Check says why no API server would take the list, or why it would not mean what it says.
func (l List) Check() error {
	if len(l) == 0 {
		return fmt.Errorf("no provider, expected at least one, the one that writes first")
	}
	for i, p := range l {
		if err := p.Check(); err != nil {
			return err
		}
		if slices.Contains(l[:i], p) {
			return fmt.Errorf("%s occurs twice, expected it once", p.Name())
		}
	}
	return nil
}

// Follows says why l must not be put in force after before, which every API server has loaded: an API server that is sooner
// than another would write what the other cannot read, or something would be left that nobody can read. left are the providers
// that may still have objects.
func (l List) Follows(before, left List) error {
	if err := l.Check(); err != nil {
		return err
	}
	if w := l.Writer(); len(before) > 0 && !before.Has(w) {
		return fmt.Errorf("%s would write before every API server can read it: put it behind %s first", w.Name(), before.Writer().Name())
	}
	if lost := left.without(l); len(lost) > 0 {
		return fmt.Errorf("%s would go while objects may lie under it: write every object anew first", lost)
	}
	return nil
}

// Stage is one step of a switch. It begins when every API server has loaded the one before.
type Stage struct {
	// Providers of every API server.
	Providers List
	// Migrate: when all have loaded them, every object is written anew before the next stage begins.
	Migrate bool
}

// Switch is the stages from one list to another. First everybody learns to read what is new, then it writes, then every object
// is written anew, and only then does the old go. now is the newest list that was given out, whether or not everything has been
// written with it: so a switch can begin in the middle of another. There are none where nothing changes.
func Switch(now, to List) []Stage {
	var stages []Stage
	last := now
	add := func(l List, migrate bool) {
		if slices.Equal(l, last) && !migrate {
			return
		}
		stages = append(stages, Stage{l, migrate})
		last = l
	}
	old := now.without(to)
	add(reading(now, to.without(now)), false)
	written := reading(to, old)
	add(written, !slices.Equal(now, to) && (now.Writer() != to.Writer() || len(old) > 0))
	add(slices.Clone(to), false)
	return stages
}

// reading is a list with more to read: before clear text, which stays last unless it writes.
func reading(now, more List) List {
	at := len(now)
	if at > 1 && now[at-1].Type == Identity {
		at--
	}
	return slices.Insert(slices.Clone(now), at, more...)
}

package encryption

import "slices"

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
	written := writing(to, old)
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

// writing is the target, with what is old for reading.
func writing(to, old List) List { return reading(to, old) }

package page

import (
	"encoding/json"

	"github.com/kmsharness/kmsharness/contract"
)

// Limits of the JSON that a page carries of one run. The whole is in the history.
const (
	maxRaw      = 8 << 10  // of one event
	maxRawTotal = 16 << 20 // of all
	minRaw      = 512      // of one event, when all have used up theirs
)

// addRaw gives each event its JSON, cut where it is long.
func (b *builder) addRaw() {
	total := 0
	for i := range b.out.Events {
		x := &b.out.Events[i]
		data, err := json.Marshal(b.events[b.index[x.Seq]])
		if err != nil {
			continue // it was read from JSON
		}
		most := maxRaw
		if total > maxRawTotal {
			most = minRaw
		}
		if len(data) > most {
			data = append(data[:most:most], contract.CutMark...)
			b.out.Cut++
		}
		total += len(data)
		x.Raw = string(data)
	}
}

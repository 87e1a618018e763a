// Package secrecy searches logs and journals for confidential bytes: the values of a scenario's objects, in clear text
// or as stored in etcd, and keys.
//
// It has the forms in which bytes can appear in a log, and the search. harness/record/tail reads files; harness/check
// decides whether a match is a violation. The package stores only the beginning of each value, which is sufficient to
// recognise it.
package secrecy

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record"
)

// window is how many bytes of a text are compared. A value of fewer bytes is not searched for: it might be there by chance.
const window = 16

// MaxValues bounds how many values are searched for; further ones are not.
const MaxValues = 20000

// Kinds of values.
const (
	Plain  = "value"      // of an object, or a key
	Sealed = "ciphertext" // as it lies in etcd
)

type Find struct {
	Object string // whose
	What   string // Plain or Sealed
	Form   string // "hex", "base64" …
}

// Guard knows values, none at first. It is not safe for concurrent use.
type Guard struct {
	known  map[[window]byte]Find
	values int
	starts [1 << 16]bool // the first two bytes of what is known, so that most of a text is passed over quickly
}

// Values is how many are searched for.
func (g *Guard) Values() int { return g.values }

// Add lets g search for a value from now on.
func (g *Guard) Add(object, what string, value []byte) {
	if g.known == nil {
		g.known = map[[window]byte]Find{}
	}
	if len(value) < window || g.values >= MaxValues {
		return
	}
	g.values++
	for form, text := range forms(value[:window]) {
		if len(text) < window {
			continue
		}
		key := [window]byte([]byte(text))
		g.known[key] = Find{object, what, form}
		g.starts[int(key[0])<<8|int(key[1])] = true
	}
}

// forms are how programs print the bytes at the beginning of a value. Of base64 the last group would depend on what follows.
func forms(head []byte) map[string]string {
	whole := len(head) / 3 * 3
	return map[string]string{
		"raw":       string(head),
		"hex":       hex.EncodeToString(head),
		"HEX":       strings.ToUpper(hex.EncodeToString(head)),
		"base64":    base64.StdEncoding.EncodeToString(head[:whole]),
		"base64url": base64.URLEncoding.EncodeToString(head[:whole]),
		"quoted":    strings.Trim(fmt.Sprintf("%q", head), `"`),
		"numbers":   strings.Trim(fmt.Sprint(head), "[]"),
	}
}

// Search finds the first value in a text.
func (g *Guard) Search(text []byte) (Find, bool) {
	for i := 0; i+window <= len(text); i++ {
		if !g.starts[int(text[i])<<8|int(text[i+1])] {
			continue
		}
		if f, found := g.known[[window]byte(text[i:i+window])]; found {
			return f, true
		}
	}
	return Find{}, false
}

// maxFinds of one log are recorded; a plugin that prints every key would fill the history.
const maxFinds = 20

// Recorder searches the lines of several logs. It is safe for concurrent use.
type Recorder struct {
	Sink record.Sink
	Now  func() time.Time

	mu    sync.Mutex
	guard Guard
	logs  map[string]*count
}

type count struct{ lines, values, finds int }

// Add lets it search for a value from now on. Do so before the value is sent anywhere.
func (r *Recorder) Add(object, what string, value []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.guard.Add(object, what, value)
}

// Line searches one line of a log, such as "log/cp-1". As long as there is nothing to search for it costs nothing.
func (r *Recorder) Line(log string, line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.guard.known == nil {
		return
	}
	if r.logs == nil {
		r.logs = map[string]*count{}
	}
	c := r.logs[log]
	if c == nil {
		c = &count{}
		r.logs[log] = c
	}
	c.lines, c.values = c.lines+1, r.guard.Values()
	find, found := r.guard.Search(line)
	if !found {
		return
	}
	if c.finds++; c.finds <= maxFinds {
		r.Sink.Record(r.Now(), "secrecy", &history.Secrecy{Log: log, Lines: c.lines, Values: c.values, Object: find.Object, What: find.What, Form: find.Form})
	}
}

// Close records how much of each log was searched, which is what makes "nothing found" say something.
func (r *Recorder) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, log := range slices.Sorted(maps.Keys(r.logs)) {
		c := r.logs[log]
		r.Sink.Record(r.Now(), "secrecy", &history.Secrecy{Log: log, Lines: c.lines, Values: c.values})
	}
	r.logs = nil
}

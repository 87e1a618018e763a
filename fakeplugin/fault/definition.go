package fault

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/profile"
)

// Scope says at what a fault strikes.
type Scope string

const (
	ScopeCall       Scope = "call"       // shapes the answer to a call
	ScopeConnection Scope = "connection" // breaks the connection that carries a call
	ScopeSocket     Scope = "socket"     // changes what a client finds at the socket's path
	ScopeProcess    Scope = "process"    // takes the plugin down
)

// Definition is a fault as the catalogue describes it.
type Definition struct {
	Name    string   `json:"name"`
	Summary string   `json:"summary"`
	Scope   Scope    `json:"scope"`
	Methods []Method `json:"methods,omitempty"` // that it can strike; empty if it does not strike at calls
	Default []Method `json:"defaultMethods,omitempty"`
	Params  []Param  `json:"params,omitempty"` // its own; Bounds come on top

	// Shape changes the plan of a call that the fault strikes; nil if it does not strike at calls.
	Shape func(*Strike) `json:"-"`
	// Check is an error if values of parameters do not go together; nil: all do.
	Check func(Fault) error `json:"-"`

	defaultFor time.Duration
	profiles   profile.Catalogue     // whose failures it can be; of provider-failure alone
	socket     func(Active, *Socket) // what it does to the socket; may be nil
}

// strikesCalls says whether methods, count and probability mean something for d.
func (d Definition) strikesCalls() bool { return d.Shape != nil }

// Bounds are the parameters that every fault has. Those of calls do not exist for faults of socket and process.
func (d Definition) Bounds() []Param {
	bounds := []Param{{Name: "for", Kind: KindDuration, Min: 0.001, Max: 24 * 3600,
		Summary: "release it by itself after this time"}}
	if d.defaultFor > 0 {
		bounds[0].Default = d.defaultFor.String()
	}
	if !d.strikesCalls() {
		return bounds
	}
	return append(bounds,
		Param{Name: "method", Kind: KindMethods, Default: formatMethods(d.Default),
			Summary: "the methods that it strikes: " + formatMethods(d.Methods) + " or some of these, joined with +"},
		Param{Name: "count", Kind: KindInt, Min: 1, Max: 1e9, Summary: "strike so many calls, then none"},
		Param{Name: "probability", Kind: KindFloat, Min: 0, Max: 1, Summary: "strike a call with this probability"},
	)
}

// Catalogue is the faults that a program knows. The zero value has the built-in ones.
type Catalogue struct {
	// Own are the faults of another module, in addition to the built-in ones.
	Own []Definition
	// Profiles are the providers whose failures provider-failure can be.
	Profiles profile.Catalogue
}

// Definitions is every fault, in the order in which it is shown.
func (c Catalogue) Definitions() []Definition {
	return slices.Concat(timings(), []Definition{noUID()}, statuses(), answers(), keyIDs(), ciphertexts(),
		[]Definition{hostileText(), providerFailure(c.Profiles)}, sockets(), processes(), c.Own)
}

// Entry is a Definition with all its parameters, for people and programs that ask what there is.
type Entry struct {
	Definition
	Bounds []Param `json:"bounds"`
}

// Entries is the catalogue with the bounds of each fault.
func (c Catalogue) Entries() []Entry {
	var entries []Entry
	for _, d := range c.Definitions() {
		entries = append(entries, Entry{d, d.Bounds()})
	}
	return entries
}

// Names is the name of every fault, in the order of the catalogue.
func (c Catalogue) Names() (names []string) {
	for _, d := range c.Definitions() {
		names = append(names, d.Name)
	}
	return names
}

package core

import (
	"time"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// Plan is what is to be done now, in this order, and what is said about it. It may be carried out in part: the next
// decision goes on from what it finds.
type Plan struct {
	Actions    []Action
	Conditions []Condition
	// Again is when to look again though nothing was seen to change; zero: only when something does.
	Again time.Duration
}

// Action is one thing to do. Each may be repeated without harm.
type Action interface{ action() }

// Actions that write to openshift-config-managed. They fail if the object is not as it was observed.
type (
	// CreateKey makes a key, with key material if its type has any.
	CreateKey struct{ Key revision.Key }
	// UpdateKey changes what is known of a key.
	UpdateKey struct{ Key revision.Key }
	// CreateConfig makes a revision of the encryption configuration.
	CreateConfig struct{ Config revision.Config }
	// CreatePluginConfig makes a revision of the plugin configuration.
	CreatePluginConfig struct{ Config revision.PluginConfig }
	// Prune removes what nobody needs.
	Prune struct {
		Keys                   []uint64
		Configs, PluginConfigs []int
	}
)

// Desire changes what is desired of the API server's pods. An installer brings one pod after another there: plugins before the API server, the API server
// before the reporter, and in the opposite order what goes.
type Desire struct{ Content }

// Actions that take a while, and whose result is observed later.
type (
	// RunPreflight checks a plugin configuration. The result is for its hash.
	RunPreflight struct{ Plugin config.Plugin }
	// Migrate rewrites every object there is. One for another attempt is given up.
	Migrate struct{ Attempt Attempt }
)

func (CreateKey) action()          {}
func (UpdateKey) action()          {}
func (CreateConfig) action()       {}
func (CreatePluginConfig) action() {}
func (Prune) action()              {}
func (Desire) action()             {}
func (RunPreflight) action()       {}
func (Migrate) action()            {}

// Condition of the operator.
type Condition struct {
	Type, Reason, Message string
	Status                bool
}

func (p *Plan) do(a Action) { p.Actions = append(p.Actions, a) }

// say adds a condition; the message is for a status that is true.
func (p *Plan) say(kind string, status bool, yes, no, message string) {
	c := Condition{Type: kind, Status: status, Reason: no}
	if status {
		c.Reason, c.Message = yes, message
	}
	p.Conditions = append(p.Conditions, c)
}

// wake asks for another look after d, or earlier.
func (p *Plan) wake(d time.Duration) {
	if d > 0 && (p.Again == 0 || d < p.Again) {
		p.Again = d
	}
}

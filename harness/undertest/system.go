// Package undertest describes a system under test. The structure System is at the same time the format of a file (Read), a set of flags (Flags) and
// what backends are configured with.
package undertest

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/harness/history"
)

// System is what is judged. The zero value is this project's own reporter, aggregator and operator, each with an identity of least privilege, and
// the fake plugin.
//
// A field with the tag usage is also a flag: reporter.command is --reporter-command. The tag enum limits the values of a field, and the tag template
// names the placeholders that it may contain.
type System struct {
	Reporter   Reporter   `json:"reporter,omitzero"`
	Aggregator Aggregator `json:"aggregator,omitzero"`
	Operator   Operator   `json:"operator,omitzero"`
	Plugin     Plugin     `json:"plugin,omitzero"`
	FakePlugin FakePlugin `json:"fakePlugin,omitzero"`
}

// Product is how reports name a program.
type Product struct {
	// Name is by default that of the image or of the program.
	Name         string `json:"name,omitempty"`
	Version      string `json:"version,omitempty"`
	Organization string `json:"organization,omitempty"`
	URL          string `json:"url,omitempty"`
}

// Reporter is the reporter under test.
type Reporter struct {
	// Command is a command template; empty: this project's reporter. The first word is a program (a path, a name of this project's programs, or a name
	// on PATH), the others are arguments; quotes group words. See Placeholders.
	Command string `json:"command,omitempty" template:"program" usage:"command template of the reporter under test (docs/reporter.md)"`
	// Image is for kind alone: an image of the container engine in place of Command. Its entrypoint runs with Args, a template; empty: the arguments
	// of this project's reporter.
	Image string `json:"image,omitempty"`
	Args  string `json:"args,omitempty" template:"program"`
	// Identity selects the credentials of reporters: history.IdentityLeast (also when empty) or history.IdentityAdmin.
	Identity string `json:"identity,omitempty" enum:"least,admin" usage:"credentials of reporters: least, which may write their own entry alone, or admin (default least)"`
	// MountSockets gives each reporter a mount namespace in which its plugins listen at contract.SocketDir, for reporters that insist on that path. It
	// needs root. It is for local: on kind every reporter has its sockets there.
	MountSockets bool `json:"mountSockets,omitempty"`
	Product
}

// Aggregator is the aggregator under test.
type Aggregator struct {
	// Command is a template as of Reporter.Command; empty: this project's aggregator.
	Command string `json:"command,omitempty" template:"program" usage:"command template of the aggregator under test (docs/aggregator.md)"`
	// Profile is what it promises: the name of a contract.AggregatorProfile; empty: what a scenario asks for.
	Profile string `json:"profile,omitempty" enum:"rollups,convergence" usage:"what the aggregator promises: rollups of reports, or convergence, the agreement on remote key ids as OpenShift's does (default what a scenario asks for)"`
	Product
}

// Operator is the operator of kube-apiserver under test, which meets the cluster through the API alone. The operators of the other API servers are
// always this project's.
type Operator struct {
	// Command is a template as of Reporter.Command; empty: this project's operator.
	Command string `json:"command,omitempty" template:"program" usage:"command template of the operator under test, on local and kind (docs/operator.md)"`
	// Preflight is a template of the program of a pre-flight pod, which checks a plugin and leaves the result in the pod's conditions; empty: this project's.
	Preflight string `json:"preflight,omitempty" template:"program" usage:"command template of the program that checks a plugin before it is used (docs/operator.md)"`
	// MountSockets gives the program of Preflight a mount namespace in which the plugin listens at contract.SocketDir, as the plugin 1. It needs root.
	MountSockets bool `json:"mountSockets,omitempty"`
	// Image and Args are as those of Reporter. The image runs in a pod of the cluster.
	Image string `json:"image,omitempty"`
	Args  string `json:"args,omitempty" template:"program"`
	// Scope is what the operator does: ScopeEncryption (also when empty) or ScopeFull.
	Scope string `json:"scope,omitempty" enum:"encryption,full" usage:"encryption: the harness makes and rolls out revisions; full: the operator does (default encryption)"`
	// Patience multiplies the times in seconds within which scenarios expect something of the operator; 0 and 1 leave them.
	Patience int `json:"patience,omitempty" usage:"factor of the seconds that scenarios give an operator, for one that is slower than this project's"`
	Product
}

// Values of Operator.Scope.
const (
	// ScopeEncryption is an operator that writes keys and the configuration that it wants. The harness makes revisions of it and rolls them out.
	ScopeEncryption = "encryption"
	// ScopeFull is an operator that also makes the revisions, and installs them by pods.
	ScopeFull = "full"
)

// Full reports whether the operator installs revisions itself.
func (o Operator) Full() bool { return o.Scope == ScopeFull }

// IsZero reports whether the operator is this project's.
func (o Operator) IsZero() bool { return o.Command == "" && o.Image == "" }

// Implementation names the operator under test in histories; zero: it is this project's.
func (o Operator) Implementation() history.Implementation {
	if o.IsZero() {
		return history.Implementation{}
	}
	return implementation(o.Product, o.Image, o.Command)
}

// Plugin is a KMS v2 plugin under test. The fake plugin then stands in front of it.
type Plugin struct {
	// Command is a template; see PluginPlaceholders. Empty: there is none under test.
	Command string `json:"command,omitempty" template:"plugin" usage:"command template of the KMS v2 plugin under test (docs/plugin.md)"`
	// Image has the program of Command, and runs it in a container; empty: Command runs on this machine. Kind needs it, the others cannot use it.
	Image string `json:"image,omitempty"`
	// Break, Restore and Rotate are templates of commands that take the plugin's KMS away, give it back, and rotate its key. Slow makes each of its
	// requests take longer than the timeout of a call; only kmsharness conform plugin uses it. Empty: there is no such command.
	Break   string `json:"break,omitempty" template:"plugin"`
	Slow    string `json:"slow,omitempty" template:"plugin"`
	Restore string `json:"restore,omitempty" template:"plugin"`
	Rotate  string `json:"rotate,omitempty" template:"plugin"`
	// Count prints how many log-ins the KMS has seen; only kmsharness conform plugin uses it.
	Count string `json:"count,omitempty" template:"plugin"`
	// The others are as the flags of kmsharness conform plugin, which alone uses them.
	Endpoint       string `json:"endpoint,omitempty"`
	SecondEndpoint string `json:"secondEndpoint,omitempty"`
	KMSAddresses   string `json:"kmsAddresses,omitempty"` // two, separated by a comma
	Log            string `json:"log,omitempty"`
	Profile        string `json:"profile,omitempty"`
	Product
}

// FakePlugin is the plugin of this project.
type FakePlugin struct {
	// Args are further arguments of every fake plugin, quoted as in a command template: a plugin that is broken from the start
	// ("--fault key-id-flip-flop") shows what a run makes of it.
	Args string `json:"args,omitempty"`
}

// IsZero reports whether there is no plugin under test.
func (p Plugin) IsZero() bool { return p == Plugin{} }

// Implementation names the plugin under test in histories; zero: there is none.
func (p Plugin) Implementation() history.Implementation {
	if p.IsZero() {
		return history.Implementation{}
	}
	return implementation(p.Product, "", p.Command)
}

func implementation(p Product, image, command string) history.Implementation {
	return history.Implementation{Name: cmp.Or(p.Name, image, NameOf(command)), Version: p.Version}
}

// Others reports whether a program under test is not this project's. A plugin does not count: no decision of this project is about plugins.
func (s System) Others() bool {
	return s.Reporter.Command != "" || s.Reporter.Image != "" || s.Aggregator.Command != "" || !s.Operator.IsZero()
}

// Has reports whether a template has one of some placeholders.
func Has(template string, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(template, "{"+name+"}") })
}

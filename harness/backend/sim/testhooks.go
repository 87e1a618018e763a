package sim

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/utils/clock"

	healthv1 "github.com/kmsharness/kmsharness/contract/proto/kmsharness/health/v1"
	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/fakeplugin/plugin"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
	"github.com/kmsharness/kmsharness/harness/altsvc"
	"github.com/kmsharness/kmsharness/operator/encryption"
	"github.com/kmsharness/kmsharness/reporter/core"
)

// TestHooks are the places outside the cores at which a subject can be made wrong on purpose. The zero value leaves everything right.
type TestHooks struct {
	// Publisher takes the place of a reporter's, each time that it starts. next is the good one; it must not be called again
	// before it is done.
	Publisher func(node string, next Publish) Publish
	// Alternatives may change how a reporter with connectivity altsvc fails over, Heard the Alt-Svc field that it is sent.
	Alternatives func(altsvc.Options) altsvc.Options
	Heard        func(field string) string
	// Patience is how long such a reporter sends its writes to an API server that it cannot reach, before it goes to another one.
	Patience time.Duration
	// ConnectEachTime lets a reporter give up its connection after each write.
	ConnectEachTime bool
	// Jitter takes the place of what was drawn for a reporter's next tick.
	Jitter func(drawn time.Duration) time.Duration
	// ProbeTimeout takes the place of the deadline of a probe.
	ProbeTimeout time.Duration
	// ScanSockets lets a reporter ask every plugin whose socket it finds, beside those of its flags.
	ScanSockets bool
	// KeepCredential lets a reporter use the credential that it read at its start.
	KeepCredential bool
	// AnyToken lets the admission policy go by the service account of reporters alone: whatever its token says, each may write every entry.
	AnyToken bool
	// AnySize lets the admission policy accept a report of any size.
	AnySize bool
	// AnyManagers lets the admission policy accept a report under any number of field managers.
	AnyManagers bool
	// OneByOne lets a reporter ask its plugins one after another.
	OneByOne bool
	// Session takes the place of what a plugin decides about its lease.
	Session func(plugin.Session, time.Time) plugin.Act
	// Send may change what a reporter or an aggregator is about to send.
	Send func(*Outgoing)
	// EarlyUnion lets an aggregator give the ClusterOperator the union that it decided before it wrote the rollups, and CarelessUnion one
	// without conditions that it could not remove.
	EarlyUnion, CarelessUnion bool
	// Hammer lets an aggregator try again at once, whatever it was answered.
	Hammer bool
	// TrustWatches lets an aggregator act upon what its watches say, without a look at the API server.
	TrustWatches bool
	// NoElection lets every aggregator lead.
	NoElection bool
	// NoWake lets an aggregator look only when something has changed.
	NoWake bool
	// Faults are in force on every plugin from its start, and are not released.
	Faults []fault.Fault
	// CredentialVersions lets an operator tell contents of credentials by the versions of their Secrets.
	CredentialVersions bool
	// Stages takes the place of the stages of a switch of the encryption.
	Stages func(good []encryption.Stage) []encryption.Stage
	// SkipObject keeps an object from being migrated.
	SkipObject func(name string) bool
	// PluginsEndFirst ends the plugins that a switch makes superfluous before it begins, ReportersEndLast the reporters after them.
	PluginsEndFirst, ReportersEndLast bool
	// AwaitOne is content when the first API server has loaded a stage.
	AwaitOne bool
	// Caller may change how a plugin makes itself known to its KMS.
	Caller func(remotekms.Caller) remotekms.Caller
	// UID may change the uid that an API server made for an envelope operation.
	UID func(made string) string
	// UnsealEachTime lets an API server keep no key that it has unsealed.
	UnsealEachTime bool
	// Operator names the API server whose operator a reporter or an aggregator is told; none: its own.
	Operator func(role, apiServer string) string
	// Key may change the key of the remote KMS that the plugins of an API server (empty: kube-apiserver) are told.
	Key func(apiServer, good string) string
	// ForeignSockets lets the reporters of further API servers ask the plugins of kube-apiserver.
	ForeignSockets bool
	// Unmigrated says of which API server (empty: kube-apiserver) a migration leaves the objects as they are.
	Unmigrated func(apiServer string) bool
	// Written may change a line of a plugin's journal. sent is the request.
	Written func(line *journal.Call, sent any)
	// Streams is for reporters that stream, and for aggregators that serve them.
	Streams StreamHooks
}

// StreamHooks are those of the streams of reporters.
type StreamHooks struct {
	// BelieveClaims lets an aggregator take a client for the node that it calls its own, whatever its certificate says.
	BelieveClaims bool
	// AnyAuthority lets an aggregator accept certificates that it has not verified.
	AnyAuthority bool
	// AnyReplica lets a replica that does not lead serve streams.
	AnyReplica bool
	// DeafToDisconnects lets an aggregator ignore the end of a stream.
	DeafToDisconnects bool
	// OutlivesTerm lets an aggregator that does not lead any more keep its streams, and write what they bring.
	OutlivesTerm bool
	// RetryRelay lets an aggregator try a report until it is written, however old it is by then.
	RetryRelay bool
	// ForgetOnReconnect lets a reporter send nothing again on a new stream.
	ForgetOnReconnect bool
	// ProbeUnheard lets a reporter probe before its stream stands.
	ProbeUnheard bool
	// WritesItself lets a reporter apply besides what it sends on its stream.
	WritesItself bool
	// Request may change what a reporter is about to send.
	Request func(*healthv1.ReportRequest)
}

// Publish carries out a write, and calls done once.
type Publish func(write core.Action, done func(error))

// Outgoing is a request of the system under test.
type Outgoing struct {
	Node                                             string // of a reporter; empty for an aggregator
	Verb, Name, Subresource, FieldManager, MediaType string
	Force                                            bool
	Body                                             []byte
}

// content is what an operator tells the content of a credential by.
func (s TestHooks) content(of *secret) string {
	if s.CredentialVersions {
		return strconv.FormatInt(of.revision, 10)
	}
	return of.digest()
}

// sent is a request as it leaves.
func (s TestHooks) sent(node string, r request) request {
	if s.Send == nil {
		return r
	}
	o := Outgoing{Node: node, Verb: r.verb, Name: r.key.Name, Subresource: r.subresource, FieldManager: r.manager, MediaType: r.contentType,
		Force: r.force, Body: r.body}
	s.Send(&o)
	r.verb, r.key.Name, r.subresource, r.manager, r.contentType = o.Verb, o.Name, o.Subresource, o.FieldManager, o.MediaType
	r.force, r.body = o.Force, o.Body
	return r
}

// alternatives is how a reporter fails over.
func (s TestHooks) alternatives(good altsvc.Options) altsvc.Options {
	if s.Alternatives == nil {
		return good
	}
	return s.Alternatives(good)
}

// heard is a field as a reporter reads it.
func (s TestHooks) heard(sent string) string {
	if s.Heard == nil {
		return sent
	}
	return s.Heard(sent)
}

// jitter is what moves the next tick.
func (s TestHooks) jitter(drawn time.Duration) time.Duration {
	if s.Jitter == nil {
		return drawn
	}
	return s.Jitter(drawn)
}

// probeTimeout is the deadline of a probe.
func (s TestHooks) probeTimeout(good time.Duration) time.Duration {
	if s.ProbeTimeout > 0 {
		return s.ProbeTimeout
	}
	return good
}

// publisher is a reporter's, for one of its lives.
func (s TestHooks) publisher(node string, good Publish) Publish {
	if s.Publisher == nil {
		return good
	}
	return s.Publisher(node, good)
}

// stages of a switch.
func (s TestHooks) stages(good []encryption.Stage) []encryption.Stage {
	if s.Stages == nil {
		return good
	}
	return s.Stages(good)
}

func (s TestHooks) skips(name string) bool { return s.SkipObject != nil && s.SkipObject(name) }

// caller is how a plugin makes itself known to its KMS.
func (s TestHooks) caller(c remotekms.Caller) remotekms.Caller {
	if s.Caller == nil {
		return c
	}
	return s.Caller(c)
}

// key is what a plugin is told.
func (s TestHooks) key(apiServer, good string) string {
	if s.Key == nil {
		return good
	}
	return s.Key(apiServer, good)
}

func (s TestHooks) unmigrated(apiServer string) bool {
	return s.Unmigrated != nil && s.Unmigrated(apiServer)
}

// uid is what an API server sends with an envelope operation.
func (s TestHooks) uid(made string) string {
	if s.UID == nil {
		return made
	}
	return s.UID(made)
}

// check says whether the faults can be in force.
func (s TestHooks) check() error {
	p := fault.NewProgram(clock.RealClock{}, 0)
	for _, f := range s.Faults {
		if _, err := p.Inject(f); err != nil {
			return fmt.Errorf("a fault of every plugin: %w", err)
		}
	}
	return nil
}

// inject puts a plugin's own faults in force, and says which they are.
func (s TestHooks) inject(p *fault.Program) (own []string) {
	for _, f := range s.Faults {
		if a, err := p.Inject(f); err == nil { // check has seen to it that they can be
			own = append(own, a.ID)
		}
	}
	return own
}

package core

import (
	"maps"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// Options of an operator.
type Options struct {
	// Interval of the reporters; from it follows how long a report is fresh.
	Interval time.Duration
	// Settle is how long all nodes must have reported a new kekID before anything is encrypted anew under it. It is longer than an API
	// server takes to ask its plugin again, which is a minute.
	Settle time.Duration
	// Retry is the pause after a pre-flight check that failed, Valid how long one counts that did not.
	Retry, Valid time.Duration
	// KeepRead: the key of before stays in the configuration for reading until everything lies under the next one, as in OpenShift: a snapshot of etcd of before
	// the switch may have to be read.
	KeepRead bool
	// Keep is how many old revisions, and unused keys, are kept.
	Keep int
}

// DefaultOptions are those of OpenShift.
func DefaultOptions() Options {
	return Options{Interval: 30 * time.Second, Settle: 5 * time.Minute, Retry: time.Minute, Valid: 10 * time.Minute, Keep: 10}
}

// Observed is everything that a decision depends on.
type Observed struct {
	Wanted    Wanted
	Preflight Preflight

	Keys          []revision.Key
	Configs       []revision.Config
	PluginConfigs []revision.PluginConfig

	// Credentials are what there is for plugins to log in: hashes of the content (config.ContentHash) by reference.
	Credentials map[config.Reference]string

	// Desired is what is desired of the API server's pods.
	Desired Content
	// Nodes are those that are expected to have a pod of the API server, whether they have one or not.
	Nodes map[string]Node
	// Migration is the one that was begun last.
	Migration Migration
	// Failure is of the action that was tried last.
	Failure Failure
}

// tolerated is how long something may fail before it is reported: an API server that is restarted refuses for less.
const tolerated = 10 * time.Second

// Failure is what has failed at each try since a time. The zero value: nothing has.
type Failure struct {
	Message string
	Since   time.Time
}

// Next is the failure after another try; err is nil if that succeeded.
func (f Failure) Next(err error, now time.Time) Failure {
	if err == nil {
		return Failure{}
	}
	if f.Since.IsZero() {
		f.Since = now
	}
	f.Message = err.Error()
	return f
}

// Lasts reports whether it has failed for longer than is tolerated.
func (f Failure) Lasts(now time.Time) bool { return !f.Since.IsZero() && now.Sub(f.Since) > tolerated }

// Content is what the pods of an API server have, or are to have. The zero value is clear text without plugins.
type Content struct {
	// Revision of the encryption configuration; 0: clear text.
	Revision int
	// Plugins, that of the newest key first. The reporter has their sockets; without any there is no reporter.
	Plugins []revision.Plugin
}

// Of is the plugin of a key.
func (c Content) Of(keyID uint64) (of config.Plugin, there bool) {
	return revision.Of(c.Plugins, keyID)
}

// Equal reports whether two contents are the same.
func (c Content) Equal(other Content) bool {
	return c.Revision == other.Revision && slices.Equal(c.Plugins, other.Plugins)
}

// Wanted is what the administrator asks for. Its plugin has the content of its credentials.
type Wanted struct {
	config.Wanted
	// Invalid says what is wrong with the configuration. Nothing else of it is used then.
	Invalid string
	// Missing are credentials that its plugin refers to and that are not there.
	Missing []string
}

// Preflight is the result of the check that was made last.
type Preflight struct {
	// Hash of the configuration that was checked. For another one it says nothing.
	Hash string
	OK   bool
	// KEK is the kekID that the plugin reported.
	KEK     string
	Message string
	At      time.Time
}

// Node is one pod of the API server.
type Node struct {
	// Up: the API server answers.
	Up bool
	// Terminating: a pod of before, which is being deleted, serves beside this one, with whatever revision.
	Terminating bool
	// Unavailable: nothing can be done on the node, because it has no power, or its pod is not there. What it ran it runs again when it is back.
	Unavailable bool
	// Since is when the node came. What is reported of a time before is of another one that had its name.
	Since time.Time
	// Loaded is the revision of the encryption configuration that it has in force; 0: none.
	Loaded int
	// Plugins that run, by keyID.
	Plugins map[uint64]config.Plugin
	// Waiting are plugins that were started and cannot run, by keyID. The kubelet tries again.
	Waiting map[uint64]Waiting
	// Report is what the reporter said last, by keyID.
	Report map[uint64]Entry
}

// serves reports whether it is known what every API server of the node has in force: the revision that is loaded.
func (n Node) serves() bool { return n.Up && !n.Terminating }

// all are the keys of its plugins, in order. One may run and wait for its start with other settings.
func (n Node) all() []uint64 {
	ids := slices.AppendSeq(slices.Collect(maps.Keys(n.Plugins)), maps.Keys(n.Waiting))
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Waiting is a plugin whose container does not run.
type Waiting struct {
	Config config.Plugin
	// Reason in the kubelet's words: "ImagePullBackOff: …".
	Reason string
}

// Entry is what is reported of one plugin.
type Entry struct {
	KEK     string
	Healthy bool
	Checked time.Time
	// Failing is since when it has not been healthy; zero while it is, or where nobody knows.
	Failing time.Time
	Detail  string
}

// Attempt is what a migration is for. A migration for another attempt proves nothing.
type Attempt struct {
	Key uint64
	// KEK and Since are the convergence that it rests upon; of KMS keys.
	KEK   string
	Since time.Time
}

// Migration rewrites every object. One that ended without being done is begun again.
type Migration struct {
	Attempt Attempt
	Done    bool
	// Failure is of its tries so far.
	Failure Failure
}

// names are the expected nodes, sorted.
func (o Observed) names() []string { return slices.Sorted(maps.Keys(o.Nodes)) }

// present are those of them on which something can be done.
func (o Observed) present() []string {
	return slices.DeleteFunc(o.names(), func(name string) bool { return o.Nodes[name].Unavailable })
}

package scenario

// Verb names an action.
type Verb string

const (
	// Plugins. Target: Plugin selector. Fault and Params as in the catalogue of fakeplugin/fault; Method empty means all.
	VerbInject  Verb = "inject"
	VerbRelease Verb = "release" // without Fault: every fault of the selected plugins

	// The remote KMS.
	VerbRotate Verb = "rotate" // a new KEK; each plugin notices with its own lag
	VerbKMS    Verb = "kms"    // Params: op = disable|enable|delete|deny|allow|cut|restore, with node (access) or kek (a version)

	// Processes. Target: Process selector.
	VerbStart   Verb = "start"
	VerbStop    Verb = "stop" // SIGTERM and wait
	VerbKill    Verb = "kill" // SIGKILL
	VerbPause   Verb = "pause"
	VerbResume  Verb = "resume"
	VerbRestart Verb = "restart" // stop and start; Params: with = kill for a crash, container for the death of its container

	// Network links. Target: Link selector. Params: mode = cut|reset|slow|mute|restore, delay.
	VerbLink Verb = "link"

	// Clocks. Target: Process selector, a node or role aggregator. Params: mode = ahead|behind|restore, by: how far from the true time.
	VerbClock Verb = "clock"

	// Answers of API servers to the system under test. Target: Process selector, the role whose requests are refused (empty: reporter and
	// aggregator) and the node of the API server. Params: mode = a history.RefusalModes or restore, verb, count, for, retryAfter in seconds.
	VerbRefuse Verb = "refuse"

	// Watches of the aggregators. Target: Process selector, the node of the API server. Params: mode = late|expired|closed|restore, by.
	VerbWatches Verb = "watches"

	// The credential of a node's reporter. Params: mode = expire|renew.
	VerbCredential Verb = "credential"

	// Nodes. Params: remove: NAME | add: NAME | replace: NAME with: NAME.
	VerbNode Verb = "node"

	// Encryption. Params: type = KMS|identity (the cluster's APIServer object); keyIDs = the plugins from now on.
	VerbEncryption Verb = "encryption"

	// The cluster's APIServer configuration, for an API server operator to act upon. Params: type, and with KMS one provider's section
	// (vault, aws, …); expect = refused if the API must not take it.
	VerbAPIServer Verb = "apiserver"

	// Data. Params: op = write|verify, count, size: secrets written through every API server in turn.
	VerbData Verb = "data"

	// Conditions of somebody else on the operator CR. Params: type, status, reason, message, manager; delete = true.
	VerbCondition Verb = "condition"

	// Entries of nodes that do not exist in the typed list of the operator CR, as other software could leave them. Params: count, 0 for none.
	VerbEntries Verb = "entries"

	// Direct API requests under a reporter's identity, to show what it may not do. Params: as = node, verb, resource,
	// name; expect = denied|allowed.
	VerbAttempt Verb = "attempt"
)

// Action is something that an environment is asked to do.
type Action struct {
	Verb Verb

	Plugin  Selector // inject, release
	Process Selector // start … restart, clock, refuse, watches, credential
	Link    Selector // link

	Fault  string
	Method string
	Params map[string]any
}

// Unlisted reports whether a starts a plugin whose socket no API server and no reporter is given.
func (a Action) Unlisted() bool { return a.Verb == VerbStart && a.Bool("unlisted") }

// Selector picks nodes, plugins, processes or links. Empty fields match all.
type Selector struct {
	// Node is a name ("cp-2"), "any" (the engine draws one with the run's seed, the same for all steps), or "all"/"".
	Node string
	// KeyID picks plugins; empty matches every plugin of the node.
	KeyID string
	// Role picks processes: etcd, apiserver, plugin, reporter, aggregator, operator, remote-kms, load-balancer; or more than one process:
	// node, pod.
	Role string
	// APIServer picks whose plugin or process it is, of those that the topology has; empty is kube-apiserver.
	APIServer string
	// Instance picks one of several aggregators: "1", "2", "leader", "standby".
	Instance string
	// From and To pick links: client|aggregator|harness → load-balancer, load-balancer → apiserver,
	// reporter → apiserver, apiserver → etcd.
	From, To string
}

// Areas are the parts of the catalogue.
func Areas() []string {
	return []string{"coldstart", "sno", "plugin", "kms", "reporter", "aggregator", "controlplane", "network",
		"node-lifecycle", "encryption-type", "rotation", "lifecycle", "observability", "security", "scale"}
}

package history

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

// Expected replaces what was expected before: the nodes that should report from At on, and whether KMS is an active
// encryption type at all.
type Expected struct {
	KMSActive bool           `json:"kmsActive"`
	Nodes     []ExpectedNode `json:"nodes"`
}

type ExpectedNode struct {
	Name string `json:"name"`
	// Since is when the cluster first knew the node (Node.creationTimestamp, whole seconds).
	Since time.Time `json:"since"`
	// KeyIDs of its plugins, the write key first.
	KeyIDs []string `json:"keyIDs"`
}

// Call is one line of a plugin's journal.
type Call struct {
	Node   string        `json:"node"`
	KeyID  string        `json:"keyID"`
	Method string        `json:"method"` // Status, Encrypt, Decrypt
	UID    string        `json:"uid,omitempty"`
	Began  time.Time     `json:"began"`
	Ended  time.Time     `json:"ended"`
	Took   time.Duration `json:"took"`
	// Outcome: "ok" (a response left the plugin), "error" (a gRPC status other than OK, or none at all),
	// "abandoned" (the caller went away first).
	Outcome string `json:"outcome"`
	Code    string `json:"code"` // gRPC code name of what was answered: OK, DeadlineExceeded …
	Text    string `json:"text,omitempty"`
	Healthz string `json:"healthz,omitempty"` // Status only, as sent
	Version string `json:"version,omitempty"` // Status only, as sent
	KEKID   string `json:"kekID,omitempty"`   // key_id as sent
	// AskedKEKID is the key_id of a Decrypt's request.
	AskedKEKID string `json:"askedKEKID,omitempty"`
	// DEKSource is the digest of the encrypted DEK source that an Encrypt answered, or that a Decrypt was given. What Data
	// of etcd has the same one was sealed with that DEK.
	DEKSource string `json:"dekSource,omitempty"`
	// HealthzBytes and KEKIDBytes are the sizes as sent, where the journal keeps a long text cut; 0 if it is whole.
	HealthzBytes int `json:"healthzBytes,omitempty"`
	KEKIDBytes   int `json:"kekIDBytes,omitempty"`
	// Faults in force on this call, by name.
	Faults []string `json:"faults,omitempty"`
}

const (
	CallOK        = "ok"
	CallError     = "error"
	CallAbandoned = "abandoned"
)

// Metrics is what the metrics of the reporter on Node said at a scrape.
type Metrics struct {
	Node    string          `json:"node"`
	Plugins []PluginMetrics `json:"plugins"`
}

// PluginMetrics are the contract's metrics of one plugin.
type PluginMetrics struct {
	KeyID string `json:"keyID"`
	// Healthy is missing before the first probe.
	Healthy *bool `json:"healthy,omitempty"`
	// Calls of Status so far, how many of them brought no answer, and how long all took together, in seconds.
	Calls   uint64  `json:"calls"`
	Errors  uint64  `json:"errors"`
	Seconds float64 `json:"seconds"`
}

// KEKs are the kekIDs that an API server had from the Status of its plugins, as its metrics said at a scrape.
type KEKs struct {
	// ID is the hash of the API server's identity: in a cluster no two have the same.
	ID string `json:"id"`
	// Hashes of the kekIDs, in order: sha256: and hexadecimal digits.
	Hashes []string `json:"hashes"`
}

// Sockets are the files of the sockets of the plugins of Node, as the file system has them.
type Sockets struct {
	Node    string   `json:"node"`
	Plugins []Socket `json:"plugins"`
}

// Socket is the file of a plugin's socket.
type Socket struct {
	KeyID string `json:"keyID"`
	// Path is where the API server connects. Behind a fake plugin the rest is about the socket of the plugin under test.
	Path string `json:"path"`
	Mode string `json:"mode"` // permissions, octal: "660"
	UID  int    `json:"uid"`
	GID  int    `json:"gid"`
	User int    `json:"user"` // of the plugin: backends run it as different users
}

// Request is one API request, from the audit log of the API server that served it.
type Request struct {
	AuditID   string `json:"auditID"`
	APIServer string `json:"apiServer"` // node of the API server
	User      string `json:"user"`
	// TokenNode is the node that the token of a service account names; empty for other users.
	TokenNode string `json:"tokenNode,omitempty"`
	UserAgent string `json:"userAgent,omitempty"`
	// ByHarness: the harness made it with the credential of User, as the scenario told it.
	ByHarness bool `json:"byHarness,omitempty"`
	// ReportOf is the node whose report an aggregator wrote, where reporters stream; else empty.
	ReportOf string `json:"reportOf,omitempty"`
	Verb     string `json:"verb"` // get, patch, update …
	// Resource is plural, with its group: "kubeapiservers.operator.openshift.io".
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
	// FieldManager and Force as in the request's options; ContentType tells an apply from a patch.
	FieldManager string `json:"fieldManager,omitempty"`
	Force        bool   `json:"force,omitempty"`
	ContentType  string `json:"contentType,omitempty"`
	Code         int    `json:"code"` // HTTP status of the response; 0 if there was none
	// Received and Completed are the API server's own instants; Event.At is Completed.
	Received  time.Time       `json:"received"`
	Completed time.Time       `json:"completed"`
	Body      json.RawMessage `json:"body,omitempty"` // request object of a write, where the audit policy keeps it
	// Message, Reason and Causes are those of the API server's status, of a refused request.
	Message string  `json:"message,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	Causes  []Cause `json:"causes,omitempty"`
	// ResourceVersion of the object in the response, where the audit policy keeps it.
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// Reporter is the node whose reporter made the request, or whose report an aggregator wrote with it; empty for other requests.
func (r *Request) Reporter() string {
	if r.ByHarness {
		return ""
	}
	if r.ReportOf != "" {
		return r.ReportOf
	}
	node, _ := contract.NodeOfReporter(r.User, r.TokenNode)
	return node
}

// Cause is one of the reasons for which an API server refused a request, as in metav1.StatusCause.
type Cause struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Field   string `json:"field"` // path of the field, "status.encryptionStatus.healthReports[0].detail"
}

// Object is a state of a watched object. At is when the watch delivered it.
type Object struct {
	Resource        string                  `json:"resource"`
	Name            string                  `json:"name"`
	ResourceVersion string                  `json:"resourceVersion"`
	Deleted         bool                    `json:"deleted,omitempty"`
	Conditions      []*Condition            `json:"conditions,omitempty"`
	HealthReports   []*contract.TypedReport `json:"healthReports,omitempty"`
	// Generation and Health are those of an EncryptionHealth.
	Generation int64                  `json:"generation,omitempty"`
	Health     *contract.HealthStatus `json:"health,omitempty"`
	// Owners names the field managers that own each condition ("condition/TYPE") and each typed report
	// ("report/NODE/KEYID"), from managedFields.
	Owners map[string][]string `json:"owners,omitempty"`
}

// Condition of an operator CR or a ClusterOperator, as stored.
type Condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason,omitempty"`
	Message            string `json:"message,omitempty"`
	LastTransitionTime string `json:"lastTransitionTime,omitempty"`
}

// Roles of processes.
const (
	RoleEtcd         = "etcd"
	RoleAPIServer    = "apiserver"
	RolePlugin       = "plugin"
	RoleReporter     = "reporter"
	RoleAggregator   = "aggregator"
	RoleRemoteKMS    = "remote-kms"
	RoleLoadBalancer = "load-balancer"
	RolePreflight    = "preflight" // of a pod that checks a plugin before it is used
	RoleOperator     = "operator"  // the API server operator, where a scenario has one
	// RoleAggregatedAPIServer is a further API server's own process in its own history (About): there the role apiserver is kube-apiserver's.
	RoleAggregatedAPIServer = "further-apiserver"
)

// Roles of what is more than one process. What happens to it is told beside what happens to each of its processes.
const (
	RoleNode = "node" // a node with all that runs on it
	RolePod  = "pod"  // the API server's static pod of a node: API server, plugins, reporter
)

// States of a process.
const (
	ProcessStarted = "started" // the process exists
	ProcessReady   = "ready"   // it answered its readiness check
	ProcessPaused  = "paused"  // SIGSTOP
	ProcessResumed = "resumed" // SIGCONT, or no longer silenced
	ProcessStopped = "stopped" // exited after SIGTERM by the harness
	// ProcessStopping is recorded of an API server before it is ended: one that is asked to end refuses writes from then on, and may drain for a while;
	// one that is killed serves nothing more, and may take a while to be gone.
	ProcessStopping = "stopping"
	// ProcessSilenced is recorded of a process that runs and is cut off from all other machines.
	ProcessSilenced = "silenced"
	ProcessKilled   = "killed" // exited after SIGKILL by the harness
	ProcessExited   = "exited" // exited although nobody asked it to
)

// Process is a change of state of a process of the environment.
type Process struct {
	Role     string `json:"role"`
	Node     string `json:"node,omitempty"`
	KeyID    string `json:"keyID,omitempty"` // plugins
	Instance int    `json:"instance,omitempty"`
	// APIServer is the further API server that it belongs to; empty: kube-apiserver, or none.
	APIServer string `json:"apiServer,omitempty"`
	PID       int    `json:"pid,omitempty"`
	State     string `json:"state"`
	Detail    string `json:"detail,omitempty"`
	// Output is the last of what a process wrote that ended by itself, as far as it is known.
	Output string `json:"output,omitempty"`
}

// States of a link.
const (
	LinkOK    = "ok"
	LinkCut   = "cut"   // packets vanish
	LinkReset = "reset" // connections are reset, new ones refused
	LinkSlow  = "slow"  // latency is added
	LinkMute  = "mute"  // new connections are accepted and not answered, existing ones are silent

	LinkThrottled     = "throttled"      // bandwidth is limited
	LinkLossy         = "lossy"          // some segments are lost and repeated
	LinkSlowHandshake = "slow-handshake" // new connections take long to be established
	LinkStale         = "stale"          // from the load balancer: its list of API servers is no longer updated
)

// Network is what a node loses when it is cut off: the To of a link from RoleNode. A node that is cut off has lost its links from
// the load balancer, its reporter's link to the load balancer, and, where it cannot be without its peers, its link to etcd. These
// links are recorded as well.
const Network = "network"

// Link is a change of state of a network link.
type Link struct {
	From  string        `json:"from"` // client, reporter, aggregator, load-balancer, apiserver
	To    string        `json:"to"`   // load-balancer, apiserver, etcd
	Node  string        `json:"node,omitempty"`
	State string        `json:"state"`
	Delay time.Duration `json:"delay,omitempty"` // LinkSlow, LinkSlowHandshake
	// Direction is what LinkCut loses: requests or answers; empty: both.
	Direction string `json:"direction,omitempty"`
	Rate      int    `json:"rate,omitempty"` // LinkThrottled: bytes a second
	Loss      int    `json:"loss,omitempty"` // LinkLossy: percent
}

// Envelope is one hop of an envelope operation, correlated by uid.
type Envelope struct {
	Hop    string `json:"hop"` // kube-apiserver, remote-kms (the plugin's own hop is a Call)
	Op     string `json:"op"`  // encrypt, decrypt
	UID    string `json:"uid"`
	Node   string `json:"node,omitempty"`
	KeyID  string `json:"keyID,omitempty"` // remote-kms: of the plugin that asked
	KEKID  string `json:"kekID,omitempty"`
	Object string `json:"object,omitempty"` // storage key, "/registry/secrets/…"
	OK     bool   `json:"ok"`
	Error  string `json:"error,omitempty"`
	// Took is how long it took, of which Event.At is the end; 0 where that is not known.
	Took time.Duration `json:"took,omitempty"`
	// For is the API request that it was for, as the API server's log names it; empty where it names none.
	For EnvelopeRequest `json:"for,omitzero"`
}

// EnvelopeRequest is what kube-apiserver logs of the request behind an envelope operation. Name is empty for a create, of which
// only the storage key knows it.
type EnvelopeRequest struct {
	Verb        string `json:"verb,omitempty"`
	Group       string `json:"group,omitempty"`
	Version     string `json:"version,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
}

// Operations on Data.
const (
	DataWritten = "written" // created or updated through an API server
	DataRead    = "read"    // read back through an API server
	DataRaw     = "raw"     // read from etcd
	// DataRestored: etcd has this value again, from a snapshot; without a digest it has none any more.
	DataRestored = "restored"
)

// Data is one encrypted object at one instant.
type Data struct {
	Op     string `json:"op"`
	Object string `json:"object"` // "secrets/NAMESPACE/NAME"
	Digest string `json:"digest,omitempty"`
	OK     bool   `json:"ok"`
	Error  string `json:"error,omitempty"`
	Node   string `json:"node,omitempty"` // API server that served it
	// Provider, of a raw read or of what was restored, is what the storage prefix names: kms-1 (k8s:enc:kms:v2:kms-1:), aescbc-2 (k8s:enc:aescbc:v1:2:), aesgcm-2,
	// or identity, where there is none.
	Provider string `json:"provider,omitempty"`
	KEKID    string `json:"kekID,omitempty"` // raw: key_id stored beside the data
	// DEKSource, raw: the digest of the encrypted DEK source stored beside the data.
	DEKSource string `json:"dekSource,omitempty"`
	// Want is the provider that every API server's configuration named when the object was written; empty while that changed.
	Want string `json:"want,omitempty"`
}

// Attempt is a stream that a scenario attempted, and how the aggregator answered. Attempts at an API server are requests of its audit log.
type Attempt struct {
	As          string `json:"as"`                    // node whose reporter's certificate was used
	Certificate string `json:"certificate,omitempty"` // what was shown in its place
	Node        string `json:"node,omitempty"`        // that the client called its own
	Code        string `json:"code"`                  // of gRPC; OK: the stream stood
	Message     string `json:"message,omitempty"`
}

// Modes of a clock that a scenario sets.
const (
	ClockAhead   = "ahead"
	ClockBehind  = "behind"
	ClockRestore = "restore"
)

// Clock is a clock that was set: from now on it is Ahead of the true time, or behind it if that is negative. It is that of a node,
// by which its reporter goes, or with role aggregator that of the aggregators. All times of a history are true.
type Clock struct {
	Role  string        `json:"role,omitempty"`
	Node  string        `json:"node,omitempty"`
	Ahead time.Duration `json:"ahead"`
}

// States of a container.
const (
	ContainerStarted  = "started"
	ContainerExited   = "exited"   // its first process has ended
	ContainerSignal   = "signal"   // somebody had the engine send it a signal
	ContainerPaused   = "paused"   // frozen with all that is in it
	ContainerUnpaused = "unpaused" // goes on
	ContainerOOM      = "oom"      // the kernel ended something in it for want of memory
	ContainerWaiting  = "waiting"  // it cannot run; Detail has why, in the kubelet's words
	ContainerUnseen   = "unseen"   // no change of it: until further notice nobody says what happens in Node
)

// PodRevised is a state of a pod as a whole: it was replaced, as Revision has it, and its API server and plugins run. Name is empty.
const PodRevised = "revised"

// PodRefused is a state of a pod as a whole: it was to be replaced by one of an older revision, and Detail has why not. The pod stays.
const PodRefused = "refused"

// Container is a change of a container, as the engine or containerd tells it. What a process below hold does is a Process: its
// container changes only when hold itself ends, or passes on that its program did.
type Container struct {
	Node string `json:"node"`
	// Namespace and Pod are empty for the container that is the node.
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	// Name in the pod, or of the engine.
	Name  string `json:"name,omitempty"`
	State string `json:"state"`
	// PodUID is that of the pod of a container that started. For a static pod it is the kubelet's, which changes with every revision.
	PodUID string `json:"podUID,omitempty"`
	// Revision of a pod that was revised, or of that of a container that waits.
	Revision int `json:"revision,omitempty"`
	// ExitCode of one that exited, Restarts of one that started: how many were in its place before. nil: nobody told.
	ExitCode *int   `json:"exitCode,omitempty"`
	Restarts *int   `json:"restarts,omitempty"`
	Detail   string `json:"detail,omitempty"`
}

// String is one line: "cp-1 kube-apiserver-cp-1/reporter exited, exit code 137".
func (c Container) String() string {
	name := c.Name
	if c.Pod != "" {
		name = strings.TrimSuffix(c.Pod+"/"+c.Name, "/")
	}
	parts := []string{strings.Join([]string{c.Node, name, c.State}, " ")}
	if c.Revision != 0 {
		parts = append(parts, fmt.Sprintf("revision %d", c.Revision))
	}
	if c.ExitCode != nil {
		parts = append(parts, fmt.Sprintf("exit code %d", *c.ExitCode))
	}
	if c.Restarts != nil {
		parts = append(parts, fmt.Sprintf("restart %d", *c.Restarts))
	}
	if c.PodUID != "" {
		parts = append(parts, "pod "+c.PodUID)
	}
	if c.Detail != "" {
		parts = append(parts, c.Detail)
	}
	return strings.Join(parts, ", ")
}

// Decision is what the API server operator made of what it saw.
type Decision struct {
	// Key is the newest encryption key; 0 before there is one.
	Key uint64 `json:"key"`
	// Revision and PluginRevision are the newest of the encryption and of the plugin configuration.
	Revision       int `json:"revision"`
	PluginRevision int `json:"pluginRevision"`
	// Keys are all encryption keys there are, in order; Revisions and PluginRevisions all revisions. What is pruned is not among them.
	Keys            []uint64 `json:"keys,omitempty"`
	Revisions       []int    `json:"revisions,omitempty"`
	PluginRevisions []int    `json:"pluginRevisions,omitempty"`
	// TargetKEK is the kekID that the pre-flight check of the newest key saw, as the annotation target-remote-key-id has it. Empty: there is none.
	TargetKEK string `json:"targetKEK,omitempty"`
	// ConvergedKEK is the kekID that all nodes agree on, as the newest key's annotation remote-key-converged-id has it, and MigratedKEK the one that
	// everything is encrypted under (migrated-remote-key-id). Empty: there is no annotation.
	ConvergedKEK string `json:"convergedKEK,omitempty"`
	MigratedKEK  string `json:"migratedKEK,omitempty"`
	// Rewriting are the StorageVersionMigrations for the newest key that have not succeeded, where they are observed.
	Rewriting []string `json:"rewriting,omitempty"`
	// Stage is what it is at, by the reason of its condition EncryptionMigrationControllerProgressing; empty at rest.
	Stage  string `json:"stage,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Ends are the nodes on which it is about to end plugins for good: those that are started with other settings keep their place.
	Ends []string `json:"ends,omitempty"`
}

// States of an Encryption.
const (
	// EncryptionConfigured: the configuration file of Node was written.
	EncryptionConfigured = "told"
	// EncryptionLoaded: the API server of Node names the configuration that it was told last as the one in force.
	EncryptionLoaded = "loaded"
	// EncryptionMigrated: according to the program that switches the encryption every object was written anew; it is about no node.
	EncryptionMigrated = "migrated"
)

// Encryption is what became of the encryption configuration of an API server.
type Encryption struct {
	Node  string `json:"node,omitempty"`
	State string `json:"state"`
	// Providers by name (identity, kms-1, aescbc-2): the first writes, all of them read.
	Providers []string `json:"providers"`
}

// StorageInventory is how all objects of the encrypted resources lie in etcd, read past every API server.
type StorageInventory struct {
	// From is when the first of them was read.
	From time.Time `json:"from,omitzero"`
	// Under counts them by provider and key.
	Under []Under `json:"under"`
}

// Under is how many objects one key of a provider has encrypted.
type Under struct {
	Provider string `json:"provider"`        // as in Encryption
	KEKID    string `json:"kekID,omitempty"` // key_id beside the data, of a plugin
	Count    int    `json:"count"`
	// Example is one of them: "secrets/NAMESPACE/NAME".
	Example string `json:"example"`
}

// Modes of a refusal: what an API server answers, and what stands behind it in a real cluster.
const (
	RefuseForbidden       = "forbidden"         // 403: a role binding was removed
	RefuseTooManyRequests = "too-many-requests" // 429: priority and fairness, with Retry-After
	RefuseLeaderChanged   = "leader-changed"    // 500: etcd elects a leader
	RefuseWebhookTimeout  = "webhook-timeout"   // 500: an admission webhook does not answer; of writes only
	RefuseUnavailable     = "unavailable"       // 503: nobody stands behind an aggregated API
	RefuseTimeout         = "timeout"           // 504: the API server did not get done
	RefuseExpired         = "expired"           // 401: the credential of a node's reporter has expired; not a mode of the verb refuse
	RefuseRestore         = "restore"           // ends it
)

func RefusalModes() []string {
	return []string{RefuseForbidden, RefuseTooManyRequests, RefuseLeaderChanged, RefuseWebhookTimeout, RefuseUnavailable, RefuseTimeout}
}

// RefusalCode is the HTTP status of a mode; 0 if there is no such mode.
func RefusalCode(mode string) int {
	return map[string]int{RefuseForbidden: http.StatusForbidden, RefuseTooManyRequests: http.StatusTooManyRequests, RefuseLeaderChanged: http.StatusInternalServerError,
		RefuseWebhookTimeout: http.StatusInternalServerError, RefuseUnavailable: http.StatusServiceUnavailable, RefuseTimeout: http.StatusGatewayTimeout, RefuseExpired: http.StatusUnauthorized}[mode]
}

// Refusal says that API servers answer requests with an error from now on, or (Over) that they no longer do. Role, Object, Node, Verb and Mode
// together say which refusal is over.
type Refusal struct {
	Role string `json:"role,omitempty"` // whose requests: reporter, aggregator or operator; empty: those of reporters and aggregators
	// Object of a scenario's data: writes of it are refused, whichever client makes them, and nothing else.
	Object string `json:"object,omitempty"`
	Node   string `json:"node,omitempty"` // of the API server, or, of RefuseExpired, of the reporter; empty: all
	Verb   string `json:"verb,omitempty"` // of the requests; empty: all
	Mode   string `json:"mode"`
	Code   int    `json:"code"`
	// RetryAfter is for how long clients may stay away when it is over: what such an answer asks for, or for how long they keep a token; 0: not at all.
	RetryAfter time.Duration `json:"retryAfter,omitempty"`
	Over       bool          `json:"over,omitempty"`
}

// Modes of the watches of an API server.
const (
	WatchesLate    = "late"    // what they tell comes late
	WatchesExpired = "expired" // they are ended with 410: too old a resource version
	WatchesClosed  = "closed"  // they are ended as a watch ends that has been long enough
	WatchesRestore = "restore" // ends that they are late
)

// Watches says how late an API server tells the aggregators what changed, from now on. An empty node is all.
type Watches struct {
	Node string        `json:"node,omitempty"`
	Late time.Duration `json:"late"`
}

// Secrecy is a search of a log or a journal for bytes of objects. One without a Form tells how much was searched in all.
type Secrecy struct {
	Log string `json:"log"` // the source of its events: "log/cp-1", "audit/cp-1", "journal/cp-1/1", "remote-kms"
	// Lines were searched so far, for so many Values.
	Lines  int `json:"lines"`
	Values int `json:"values"`
	// Object whose bytes were found, of What ("value", "ciphertext"), printed as Form ("hex", "base64" …).
	Object string `json:"object,omitempty"`
	What   string `json:"what,omitempty"`
	Form   string `json:"form,omitempty"`
}

// RoleHarness is the program that runs scenarios and records them.
const RoleHarness = "harness"

// Starvation is a time in which a process could have run and got no processor. If it is the harness, most likely nothing ran on the machine.
type Starvation struct {
	// Role is RoleHarness for the harness itself. Node is empty where it is not known.
	Role string `json:"role"`
	Node string `json:"node,omitempty"`
	// From is when it should have run, To when it did; Event.At is To.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

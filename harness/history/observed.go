package history

import (
	"encoding/json"
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

// Outcomes of a Call.
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
	Resource        string                 `json:"resource"`
	Name            string                 `json:"name"`
	ResourceVersion string                 `json:"resourceVersion"`
	Deleted         bool                   `json:"deleted,omitempty"`
	Conditions      []Condition            `json:"conditions,omitempty"`
	HealthReports   []contract.TypedReport `json:"healthReports,omitempty"`
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
	RoleOperator     = "operator" // the API server operator, where a scenario has one
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
	ProcessResumed = "resumed" // SIGCONT
	ProcessStopped = "stopped" // exited after SIGTERM by the harness
	// ProcessStopping is recorded of an API server before it is ended: one that is asked to end refuses writes from then on, and may drain for a while;
	// one that is killed serves nothing more, and may take a while to be gone.
	ProcessStopping = "stopping"
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
)

// Data is one encrypted object at one instant.
type Data struct {
	Op     string `json:"op"`
	Object string `json:"object"` // "secrets/NAMESPACE/NAME"
	Digest string `json:"digest,omitempty"`
	OK     bool   `json:"ok"`
	Error  string `json:"error,omitempty"`
	Node   string `json:"node,omitempty"` // API server that served it
	// Provider, of a raw read, is what the storage prefix names: kms-1 (k8s:enc:kms:v2:kms-1:), aescbc-2 (k8s:enc:aescbc:v1:2:), aesgcm-2,
	// or identity, where there is none.
	Provider string `json:"provider,omitempty"`
	KEKID    string `json:"kekID,omitempty"` // raw: key_id stored beside the data
	// DEKSource, raw: the digest of the encrypted DEK source stored beside the data.
	DEKSource string `json:"dekSource,omitempty"`
	// Want is the provider that every API server's configuration named when the object was written; empty while that changed.
	Want string `json:"want,omitempty"`
}

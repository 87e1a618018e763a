package history

import (
	"net/http"
	"time"
)

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

// Refusal says that API servers answer requests with an error from now on, or (Over) that they no longer do. Role, Node, Verb and Mode
// together say which refusal is over.
type Refusal struct {
	Role string `json:"role,omitempty"` // whose requests: reporter or aggregator; empty: both
	Node string `json:"node,omitempty"` // of the API server, or, of RefuseExpired, of the reporter; empty: all
	Verb string `json:"verb,omitempty"` // of the requests; empty: all
	Mode string `json:"mode"`
	Code int    `json:"code"`
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

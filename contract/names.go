package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Names of the conditions on the operator's CR (docs/contract.md, "The reporter" and "The aggregator").
const (
	// ReporterConditionPrefix begins the type of every per-node condition. It deliberately has no Degraded,
	// Available or Progressing suffix: the status syncer routes by suffix and must leave reports alone.
	ReporterConditionPrefix = "KMSHealthReporter_"

	ConditionDegraded    = "KMSPluginsDegraded"
	ConditionAvailable   = "KMSPluginsAvailable"
	ConditionProgressing = "KMSPluginsProgressing"

	// ConditionEncrypted of OpenShift's encryption controllers has no suffix of a rollup.
	ConditionEncrypted = "Encrypted"
)

// Conditions of the ClusterOperator; conditions of the CR are united by these suffixes.
const (
	ClusterOperatorDegraded    = "Degraded"
	ClusterOperatorAvailable   = "Available"
	ClusterOperatorProgressing = "Progressing"
)

// A reporter's condition always says the same three things; the signal is in the message, so that
// lastTransitionTime never moves.
const (
	ReporterConditionStatus = "True"
	ReporterConditionReason = "AsExpected"
)

// Field managers. Every reporter owns its entry under a manager of its own, the same across restarts: under Server-Side Apply, many writers can
// share one list map.
const (
	ReporterFieldManagerPrefix = "kms-health-reporter-"
	AggregatorFieldManager     = "kms-health-aggregator"

	// MaxFieldManagerBytes is the API server's limit on a field manager's name.
	MaxFieldManagerBytes = 128
)

// ReporterIdentityPrefix begins the user name of a reporter; the node name follows. The admission policy that
// narrows a reporter to its own entry derives the node from it.
const ReporterIdentityPrefix = "system:kms-health-reporter:"

// ReporterGroup is the group of all reporter identities, AggregatorIdentity the user name of the aggregator.
const (
	ReporterGroup      = "system:kms-health-reporters"
	AggregatorIdentity = "system:kms-health-aggregator"
)

// ReporterFlows and EndpointFlows are flow schemas of API servers, and the priority levels that they assign: of all requests of reporters, and of
// reads of the addresses of the API servers.
const (
	ReporterFlows = "kms-health-reporters"
	EndpointFlows = "kubernetes-endpoints"
)

// NodeOfIdentity is the node that a reporter's user speaks for; ok is false for every other user. It is the rule of the admission policy, for those who
// authenticate reporters themselves.
func NodeOfIdentity(user string, groups []string) (node string, ok bool) {
	node, ok = strings.CutPrefix(user, ReporterIdentityPrefix)
	return node, ok && node != "" && slices.Contains(groups, ReporterGroup)
}

// AggregatorServerName is the name in the certificate with which the aggregator serves the streams of reporters.
const AggregatorServerName = "kms-health-aggregator"

// A reporter in a Deployment has the service account of its pod in place of a user of its own: the same for all nodes. Its node is in its token, which
// the API server makes for the pod, and shows as the extra field NodeNameExtra of the user.
const (
	ReporterServiceAccount = "kms-health-reporter"
	NodeNameExtra          = "authentication.kubernetes.io/node-name"

	// Namespace has the service account, and the aggregator's lease, unless an installation names another.
	Namespace = "kms-health"

	// A reporter in a static pod may have the legacy token of a Secret: that of a service account in TokenNamespace with the name of its node. All accounts
	// there are members of TokenGroup.
	TokenNamespace = "kms-health-reporters"
	TokenGroup     = "system:serviceaccounts:" + TokenNamespace
)

// RollupTypes are the conditions that the aggregator owns, in the order in which they are shown.
func RollupTypes() []string {
	return []string{ConditionDegraded, ConditionAvailable, ConditionProgressing}
}

// ConditionType is the type of the condition that the reporter on node writes.
func ConditionType(node string) string { return ReporterConditionPrefix + node }

// NodeOfCondition is the inverse of ConditionType; ok is false for a condition that is not a report.
func NodeOfCondition(conditionType string) (node string, ok bool) {
	node, ok = strings.CutPrefix(conditionType, ReporterConditionPrefix)
	return node, ok && node != ""
}

// FieldManager is the field manager under which this project's reporter on node writes: the prefix and the SHA-256 of the node name in hex, as OpenShift's
// reporter has it. It fits whatever the length of the node name. It identifies nobody: what a reporter may write depends on its user (ReporterIdentity).
func FieldManager(node string) string {
	sum := sha256.Sum256([]byte(node))
	return ReporterFieldManagerPrefix + hex.EncodeToString(sum[:])
}

// ReporterIdentity is the user name under which the reporter on node talks to the API server with a client certificate.
func ReporterIdentity(node string) string { return ReporterIdentityPrefix + node }

// ReporterAccount is the user name of a reporter that has the service account of a namespace.
func ReporterAccount(namespace string) string {
	return serviceAccountPrefix + namespace + ":" + ReporterServiceAccount
}

// ReporterToken is the user name of a reporter that has the legacy token of its node.
func ReporterToken(node string) string { return serviceAccountPrefix + TokenNamespace + ":" + node }

const serviceAccountPrefix = "system:serviceaccount:"

// NodeOfReporter is the node whose reporter has an identity; ok is false for a user that is no reporter. tokenNode is the user's NodeNameExtra. The node is
// empty for a service account whose token names none: it may write nothing.
func NodeOfReporter(user, tokenNode string) (node string, ok bool) {
	if node, ok := strings.CutPrefix(user, ReporterIdentityPrefix); ok {
		return node, true
	}
	account, ok := strings.CutPrefix(user, serviceAccountPrefix)
	namespace, name, _ := strings.Cut(account, ":")
	if ok && namespace == TokenNamespace {
		return name, true
	}
	if !ok || namespace == "" || name != ReporterServiceAccount {
		return "", false
	}
	return tokenNode, true
}

// Metrics of a reporter (docs/contract.md, "Metrics, alerts"), each with the labels node and keyID.
const (
	MetricCallSeconds = "kms_plugin_status_call_duration_seconds" // histogram
	MetricCallErrors  = "kms_plugin_status_call_errors_total"     // counter
	MetricHealthy     = "kms_plugin_healthy"                      // gauge, 1 or 0
)

// Reasons of KMSPluginsDegraded, worst first (docs/contract.md, "The aggregator"). Where several apply, the first
// of this list is the rollup's reason and its message names the others too.
const (
	ReasonPluginUnhealthy     = "PluginUnhealthy"     // True
	ReasonPluginUnreachable   = "PluginUnreachable"   // True
	ReasonReportStale         = "ReportStale"         // Unknown
	ReasonReportMalformed     = "ReportMalformed"     // Unknown
	ReasonClockSkew           = "ClockSkew"           // Unknown
	ReasonReportMissing       = "ReportMissing"       // Unknown
	ReasonAwaitingFirstReport = "AwaitingFirstReport" // False
	ReasonAsExpected          = "AsExpected"          // False
)

// Reasons of KMSPluginsAvailable.
const (
	// ReasonNoUsableWriteKey: on some expected node no plugin for the write key is usable.
	ReasonNoUsableWriteKey = "NoUsableWriteKey"
	// ReasonWriteKeyUnknown: no write-key plugin is known to be unusable, but for some node nothing fresh is known.
	ReasonWriteKeyUnknown = "WriteKeyUnknown"
)

// Reasons of KMSPluginsProgressing. The two True reasons are the contract's; the False ones tell a rotation
// controller whether it may go on: AsExpected means converged, NotConverged means that some expected node does not
// freshly and healthily agree although no change is known to be under way.
const (
	ReasonKEKRotationInProgress  = "KEKRotationInProgress"  // True
	ReasonKeyMigrationInProgress = "KeyMigrationInProgress" // True
	ReasonNotConverged           = "NotConverged"           // False
)

// SocketDir is where plugins listen on a real node.
const SocketDir = "/var/run/kmsplugin"

// socketName is the file name of a plugin's socket. keyID is a sequence number in OpenShift; letters are allowed
// because the per-configuration scheme of the plugin-management proposal uses a hash in its place.
var socketName = regexp.MustCompile(`^kms-([A-Za-z0-9][A-Za-z0-9-]{0,62})\.sock$`)

// SocketPath is the endpoint of the plugin with the given keyID below dir.
func SocketPath(dir, keyID string) string {
	return "unix://" + strings.TrimRight(dir, "/") + "/kms-" + keyID + ".sock"
}

// KeyIDOfSocket reads the keyID out of an endpoint such as unix:///var/run/kmsplugin/kms-2.sock.
func KeyIDOfSocket(endpoint string) (keyID string, err error) {
	path, ok := strings.CutPrefix(endpoint, "unix://")
	if !ok || !strings.HasPrefix(path, "/") {
		return "", fmt.Errorf("socket %q: expected unix:///DIR/kms-KEYID.sock", endpoint)
	}
	m := socketName.FindStringSubmatch(path[strings.LastIndex(path, "/")+1:])
	if m == nil {
		return "", fmt.Errorf("socket %q: file name must be kms-KEYID.sock (KEYID: letters, digits and dashes, at most 63)", endpoint)
	}
	return m[1], nil
}

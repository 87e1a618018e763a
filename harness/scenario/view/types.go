package view

import "time"

// The types below are the schema of the state view; the cel tags are the names that a scenario uses.

// variables are what an expression sees: of kube-apiserver, and of the further API servers. activation computes them.
type variables struct {
	APIServer
	Metrics    map[string]map[string]Metrics `cel:"metrics"`
	Socket     map[string]map[string]Socket  `cel:"socket"`
	Health     Health                        `cel:"health"`
	APIServers map[string]APIServer          `cel:"apiServer"`
	Any        string                        `cel:"any"` // the node that it stands for
}

// APIServer is what an expression sees of any API server.
type APIServer struct {
	Rollup          Rollup                       `cel:"rollup"`
	ClusterOperator Rollup                       `cel:"clusterOperator"`
	Report          map[string]map[string]Entry  `cel:"report"`
	Reports         []Item                       `cel:"reports"`
	Expected        []string                     `cel:"expected"`
	Plugins         []Plugin                     `cel:"plugins"`
	KMSActive       bool                         `cel:"kmsActive"`
	Conditions      map[string]Condition         `cel:"conditions"`
	Process         map[string]map[string]string `cel:"process"`
	Writes          map[string]Writes            `cel:"writes"`
	Data            Data                         `cel:"data"`
	Encryption      Encryption                   `cel:"encryption"`
	Operator        Operator                     `cel:"operator"`
	Operations      Operations                   `cel:"operations"`
}

// Condition of the operator CR or the ClusterOperator. One that is not there has empty texts and exists == false.
type Condition struct {
	Exists  bool   `cel:"exists"`
	Status  string `cel:"status"`
	Reason  string `cel:"reason"`
	Message string `cel:"message"`
}

// Rollup is the three conditions of the aggregator, or of the ClusterOperator.
type Rollup struct {
	Degraded    Condition `cel:"degraded"`
	Available   Condition `cel:"available"`
	Progressing Condition `cel:"progressing"`
}

// Health is the EncryptionHealth, with reporters that stream. Ready is the status of its condition. Generation is that of its spec, ObservedGeneration the one
// that its lists are for, and Observed that of each node.
type Health struct {
	Generation         int64            `cel:"generation"`
	ObservedGeneration int64            `cel:"observedGeneration"`
	Observed           map[string]int64 `cel:"observed"`

	Ready         string               `cel:"ready"`
	ReadyNodes    []string             `cel:"readyNodes"`
	NotReadyNodes []string             `cel:"notReadyNodes"`
	Replicas      map[string]Condition `cel:"replicas"`
}

// Entry is what a node last said about one plugin, in either wire form.
type Entry struct {
	Status string `cel:"status"`
	KEKID  string `cel:"kekID"`
	Detail string `cel:"detail"`
	// Age since lastChecked, at the instant at which the expression is judged.
	Age time.Duration `cel:"age"`
	// Fresh is what the contract calls fresh: neither stale nor from the future.
	Fresh bool `cel:"fresh"`
}

// Item is an Entry with its place, for expressions over all of them.
type Item struct {
	Node   string `cel:"node"`
	KeyID  string `cel:"keyID"`
	Status string `cel:"status"`
	KEKID  string `cel:"kekID"`
	Detail string `cel:"detail"`
}

// Plugin is one instance that should be reported.
type Plugin struct {
	Node  string `cel:"node"`
	KeyID string `cel:"keyID"`
}

// Writes of one node's reporter to the operator CR since the history began, and how many of them each API server got, by node.
type Writes struct {
	Count  int64            `cel:"count"`
	Failed int64            `cel:"failed"`
	At     map[string]int64 `cel:"at"`
}

// Data counts the encrypted objects of the run: written, refused or lost on the way there, read back unchanged, and read back wrong
// or not at all.
type Data struct {
	Written  int64 `cel:"written"`
	Refused  int64 `cel:"refused"`
	Verified int64 `cel:"verified"`
	Lost     int64 `cel:"lost"`
	// Under is how many objects of the cluster each provider has encrypted, as etcd had it when it was looked at last: kms-1,
	// aescbc-2, identity. Keys counts the KEKs that those of each plugin lie under.
	Under map[string]int64 `cel:"under"`
	Keys  map[string]int64 `cel:"keys"`
	// KEKIDs are those keys, sorted.
	KEKIDs map[string][]string `cel:"kekIDs"`
}

// Encryption is what the API server of each node has in force, by node: providers such as kms-1 and identity, the one that writes first.
// A node whose API server has not loaded anything since the history began is not there.
type Encryption = map[string][]string

// Operator is what an API server operator (lifecycle: operator) has made: the newest key and revisions, and all there are. Stage is what it is
// at, as the reason of its condition EncryptionMigrationControllerProgressing; empty at rest. ConvergedKEK is the kekID that its newest key is
// annotated with as agreed on by all nodes; empty: there is no annotation.
type Operator struct {
	Key             int64   `cel:"key"`
	Revision        int64   `cel:"revision"`
	PluginRevision  int64   `cel:"pluginRevision"`
	Keys            []int64 `cel:"keys"`
	Revisions       []int64 `cel:"revisions"`
	PluginRevisions []int64 `cel:"pluginRevisions"`
	Stage           string  `cel:"stage"`
	ConvergedKEK    string  `cel:"convergedKEK"`
}

// Operations counts the envelope operations of the run: calls of Encrypt and Decrypt that were answered, those of them that carried no uid,
// the uids that API server, plugin and remote KMS all told of (of a plugin under test: API server and plugin), and the writes that the API server logged with uid, resource and object.
type Operations struct {
	Encrypts   int64 `cel:"encrypts"`
	Decrypts   int64 `cel:"decrypts"`
	WithoutUID int64 `cel:"withoutUID"`
	Followed   int64 `cel:"followed"`
	Named      int64 `cel:"named"`
}

// Metrics are what a reporter's metrics last said of one plugin.
type Metrics struct {
	// Healthy is 1 or 0, and -1 before the first probe.
	Healthy int64 `cel:"healthy"`
	// Calls of Status, and how many of them brought no answer.
	Calls  int64 `cel:"calls"`
	Errors int64 `cel:"errors"`
	// Seconds that all calls took together.
	Seconds float64 `cel:"seconds"`
}

// Socket is the file of a plugin's socket as it was found last. One that is not there is no element of its map.
type Socket struct {
	Path string `cel:"path"`
	Mode string `cel:"mode"` // octal: "660"
	UID  int64  `cel:"uid"`
	GID  int64  `cel:"gid"`
	User int64  `cel:"user"` // of the plugin
}

package history

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
	// ConvergedKEK is the kekID that all nodes agree on, as the newest key's annotation remote-key-converged-id has it, and MigratedKEK the one that
	// everything is encrypted under (migrated-remote-key-id). Empty: there is no annotation.
	ConvergedKEK string `json:"convergedKEK,omitempty"`
	MigratedKEK  string `json:"migratedKEK,omitempty"`
	// Stage is what it is at, by the reason of its condition EncryptionMigrationControllerProgressing; empty at rest.
	Stage  string `json:"stage,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Ends are the nodes on which it is about to end plugins for good: those that are started with other settings keep their place.
	Ends []string `json:"ends,omitempty"`
	// Actions are what it is about to do, in order, in words.
	Actions []string `json:"actions,omitempty"`
}

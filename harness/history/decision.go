package history

// Decision is what the API server operator made of what it saw.
type Decision struct {
	// Key is the newest encryption key; 0 before there is one.
	Key uint64 `json:"key"`
	// Revision and PluginRevision are the newest of the encryption and of the plugin configuration.
	Revision       int `json:"revision"`
	PluginRevision int `json:"pluginRevision"`
	// Stage is what it is at, by the reason of its condition EncryptionProgressing; empty at rest.
	Stage  string `json:"stage,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Actions are what it is about to do, in order, in words.
	Actions []string `json:"actions,omitempty"`
}

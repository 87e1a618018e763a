package history

// States of an Encryption.
const (
	// EncryptionConfigured: the configuration file of Node was written.
	EncryptionConfigured = "told"
	// EncryptionLoaded: the API server of Node names the configuration that it was told last as the one in force.
	EncryptionLoaded = "loaded"
	// EncryptionMigrated: whoever switches the encryption holds that every object was written anew; it is about no node.
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

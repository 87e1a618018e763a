package apiservers

import "strings"

// RemoteKey is the name, unless somebody gave it another, of the key behind the plugins of a keyID, of a further API server or (empty) of kube-apiserver.
func RemoteKey(apiServer, keyID string) string {
	if apiServer == "" {
		return "key-" + keyID
	}
	return apiServer + ".key-" + keyID
}

// OfKey is the further API server whose plugins a key is behind; empty: kube-apiserver's.
func OfKey(key string) string {
	if name, _, ok := strings.Cut(key, "."); ok {
		return name
	}
	return ""
}

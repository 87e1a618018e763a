package contract

import (
	"fmt"
	"regexp"
	"strings"
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

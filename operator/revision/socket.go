package revision

import (
	"fmt"
	"strconv"

	"github.com/kmsharness/kmsharness/contract"
)

// SocketName is what the socket of a key's plugin is called after: kms-{keyID}.sock. A plugin with other settings for the same key listens at the same
// socket. Reporters call the plugin by the name.
func SocketName(keyID uint64) string { return strconv.FormatUint(keyID, 10) }

// Socket is the endpoint of a key's plugin below dir.
func Socket(dir string, keyID uint64) string { return contract.SocketPath(dir, SocketName(keyID)) }

// ParseKeyID reads a keyID in the one way in which it is written.
func ParseKeyID(text string) (uint64, error) {
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil || id == Plain || strconv.FormatUint(id, 10) != text {
		return 0, fmt.Errorf("keyID %q: expected a number from 1, without leading zeros", text)
	}
	return id, nil
}

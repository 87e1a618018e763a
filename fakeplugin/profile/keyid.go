package profile

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Key is what is known of a version of a remote key.
type Key struct {
	Name    string // of the remote key
	KEK     string // id of the version
	Version int
	Created time.Time
}

// Placeholders of a key_id's template, and whether they differ from version to version of one key. {varint} is the version and {length} the length of
// {key}, as protobuf writes them.
func Placeholders() map[string]bool {
	return map[string]bool{"{key}": false, "{uuid}": false, "{hash}": false, "{version}": true, "{kek}": true, "{hex}": true, "{created}": true, "{varint}": true, "{length}": false}
}

var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

// Of is the key_id for a version of a key; empty for one that is not known yet.
func (k KeyID) Of(key Key) string {
	if key.KEK == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(key.Name))
	digest := hex.EncodeToString(sum[:])
	text := strings.NewReplacer(
		"{key}", key.Name, "{kek}", key.KEK, "{version}", strconv.Itoa(key.Version), "{created}", strconv.FormatInt(key.Created.Unix(), 10),
		"{hash}", digest, "{uuid}", uuid(digest), "{hex}", hex.EncodeToString([]byte(key.KEK)),
		"{varint}", string(binary.AppendUvarint(nil, uint64(key.Version))), "{length}", string(binary.AppendUvarint(nil, uint64(len(key.Name)))),
	).Replace(k.Template)
	if k.Base64 {
		return base64.StdEncoding.EncodeToString([]byte(text))
	}
	return text
}

// uuid has the form of a random UUID (version 4) and is the same for the same digest.
func uuid(digest string) string {
	return digest[:8] + "-" + digest[8:12] + "-4" + digest[13:16] + "-8" + digest[17:20] + "-" + digest[20:32]
}

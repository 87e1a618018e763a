package publish

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// yamlSafe escapes, in a JSON document, the characters that JSON allows as they are and YAML does not. The API server
// reads an apply as YAML, and one DEL or byte order mark in the key_id of a hostile plugin would make it reject the
// whole apply. They can only stand inside strings, where \uXXXX means the same to both.
func yamlSafe(json []byte) []byte {
	if !bytes.ContainsFunc(json, func(r rune) bool { return r >= 0x7f }) {
		return json
	}
	var b bytes.Buffer
	for i := 0; i < len(json); {
		r, size := utf8.DecodeRune(json[i:])
		if yamlForbids(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.Write(json[i : i+size])
		}
		i += size
	}
	return b.Bytes()
}

// yamlForbids follows YAML 1.2, 5.1 "Character Set", for what is left after encoding/json has escaped C0 controls,
// U+2028 and U+2029; U+0085 is allowed there but read as a line break.
func yamlForbids(r rune) bool {
	return r >= 0x7f && r <= 0x9f || r == 0xfeff || r == 0xfffe || r == 0xffff
}

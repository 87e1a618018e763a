package plugin

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
)

// revealBytes is how much of a plaintext is searched for: so much does not occur by chance. It is a multiple of three, so that the base64 of the
// plaintext contains that of the part.
const revealBytes = 15

// reveals returns how data shows a part of a seed, and "" if it does not.
func reveals(data, plaintext []byte) string {
	if len(plaintext) < 2*revealBytes {
		return ""
	}
	parts := [][]byte{plaintext[:revealBytes], plaintext[revealBytes : 2*revealBytes]}
	for _, d := range decodings(data) {
		if how := findPlaintext(d.data, parts); how != "" {
			return how + d.inside
		}
	}
	return ""
}

// decoded is data after an encoding was removed.
type decoded struct {
	inside string
	data   []byte
}

// decodings are data as it is and, if it is text in base64 or hexadecimal digits, what the text stands for. A prefix that ends in a colon, as in
// vault:v1:TEXT, is not part of the text.
func decodings(data []byte) []decoded {
	list := []decoded{{"", data}}
	text := string(data[bytes.LastIndexByte(data, ':')+1:])
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if b, err := e.DecodeString(text); err == nil && len(b) > 0 {
			list = append(list, decoded{", inside base64", b})
			break
		}
	}
	if b, err := hex.DecodeString(text); err == nil && len(b) > 0 {
		list = append(list, decoded{", inside hexadecimal digits", b})
	}
	return list
}

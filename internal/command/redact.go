package command

import (
	"regexp"
	"strings"
)

// secretArgument is an argument that carries a credential itself: --token=…, -p-secret …, TOKEN=…. A name that ends with file, path, dir or name
// only says where the credential is.
var secretArgument = regexp.MustCompile(`(?i)((?:^|[\s'"]|--?)[a-z0-9_-]*(?:token|secret|passw(?:or)?d|passphrase|credentials?|api-?key|pin)(?:-?(?:id|value))?)(=|\s+)('[^']*'|"[^"]*"|[^\s'"]+)`)

// Redacted replaces the values of arguments that carry a credential, so that a command can be printed and kept. Placeholders, paths and further
// flags stay.
func Redacted(text string) string {
	return secretArgument.ReplaceAllStringFunc(text, func(found string) string {
		m := secretArgument.FindStringSubmatch(found)
		switch m[3][0] {
		case '{', '/', '-', '$':
			return found
		}
		if m[2] != "=" && m[1][0] != '-' && (len(m[1]) < 2 || m[1][1] != '-') {
			return found // words, not a flag and its value
		}
		return m[1] + m[2] + "REDACTED"
	})
}

// Shown is a command for a message or a log: words with spaces are quoted, and credentials are redacted.
func Shown(words []string) string {
	shown := make([]string, len(words))
	for i, word := range words {
		if shown[i] = word; strings.ContainsAny(word, " \t\n") {
			shown[i] = `"` + word + `"`
		}
	}
	return Redacted(strings.Join(shown, " "))
}

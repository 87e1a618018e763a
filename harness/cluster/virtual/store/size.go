package store

import (
	"encoding/json"
	"strconv"
)

// jsonSize is how many bytes a decoded JSON value takes when it is encoded.
func jsonSize(v any) int {
	switch v := v.(type) {
	case nil:
		return len("null")
	case string:
		return textSize(v)
	case bool:
		return len(strconv.FormatBool(v))
	case int64:
		return len(strconv.FormatInt(v, 10))
	case map[string]any:
		n := 1 + max(1, len(v)) // braces, and commas between
		for k, item := range v {
			n += textSize(k) + 1 + jsonSize(item)
		}
		return n
	case []any:
		n := 1 + max(1, len(v))
		for _, item := range v {
			n += jsonSize(item)
		}
		return n
	}
	b, err := json.Marshal(v)
	if err != nil {
		return 0 // nothing that came out of JSON
	}
	return len(b)
}

// textSize is the bytes of a JSON string; only what needs escaping is encoded to be measured.
func textSize(s string) int {
	n := len(s) + 2
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"', c == '\\', c == '\n', c == '\r', c == '\t', c == '\b', c == '\f':
			n++
		case c < 0x20, c == '<', c == '>', c == '&':
			n += 5
		case c >= 0x80:
			b, _ := json.Marshal(s) // a string always encodes
			return len(b)
		}
	}
	return n
}

package store

import (
	"encoding/json"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

func entrySize(e *metav1.ManagedFieldsEntry) int {
	n := len(`{"manager":,"operation":,"apiVersion":,"fieldsType":,"fieldsV1":}`) + textSize(e.Manager) +
		textSize(string(e.Operation)) + textSize(e.APIVersion) + textSize(e.FieldsType)
	if e.FieldsV1 != nil {
		n += len(e.FieldsV1.GetRawBytes())
	}
	if e.Time != nil {
		n += len(`,"time":"2006-01-02T15:04:05Z"`)
	}
	if e.Subresource != "" {
		n += len(`,"subresource":`) + textSize(e.Subresource)
	}
	return n
}

package fault

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
)

// HugeBytes is the size of the kind huge.
const HugeBytes = 1 << 20

func hostileText() Definition {
	kinds := []string{"control", "json", "log", "nul", "bidi", "multi-line", "invalid-utf8", "huge"}
	return Definition{
		Name: "hostile-text", Scope: ScopeCall, Methods: Methods(), Default: []Method{Status},
		Summary: "A text of the answer is meant to harm whoever stores, logs or prints it.",
		Params: []Param{
			{Name: "kind", Kind: KindEnum, Enum: kinds, Default: kinds[0],
				Summary: "control characters, JSON injection, log injection, NUL bytes, bidirectional overrides, several lines with a URL, invalid UTF-8 bytes on the wire, 1 MiB"},
			{Name: "in", Kind: KindEnum, Enum: []string{"healthz", "version", "key-id", "error"}, Default: "healthz",
				Summary: "where it stands; error is the text of a gRPC status"},
			{Name: "code", Kind: KindCode, Default: codes.Internal.String(), Summary: "the gRPC code, with in=error"},
		},
		Check: checkHostile,
		Shape: func(s *Strike) {
			text := HostileText(s.Fault.Text("kind"))
			if in := s.Fault.Text("in"); in != "error" {
				s.Edit(Edit{Field: Field(in), Value: text})
				return
			}
			s.Plan.Error = &Error{s.Fault.Code("code"), text}
		},
	}
}

func checkHostile(f Fault) error {
	in := f.Text("in")
	for _, m := range f.Methods {
		if in == "error" || m == Status || (m == Encrypt && in == "key-id") {
			continue
		}
		return fmt.Errorf("in: %s has no %s in its answer; choose in=error or method=Status", m, in)
	}
	return nil
}

// HostileText is the text of a kind.
func HostileText(kind string) string {
	switch kind {
	case "control":
		return "bad\x01\x02\x07\x1b[31mred\x1b[0m\x7f\u0085\r\b\btext"
	case "json":
		return `bad","status":"healthy","kekID":"kek-1ied"},{"keyID":"1","x":"\u0000`
	case "log":
		return "bad\n{\"level\":\"INFO\",\"msg\":\"kms plugin is healthy\"}\nI0101 00:00:00.000000 1 plugin.go:1] all good"
	case "nul":
		return "bad\x00text\x00"
	case "bidi":
		return "bad \u202eyhtlaeh si nigulp\u202c \u200b\ufefftext"
	case "multi-line":
		return "bad: POST https://kms.example.com/v1/encrypt?token=s3cr3t\n\n\tat line 1\n\tat line 2\n"
	case "invalid-utf8":
		return "bad\xff\xfe\xc3\x28\xed\xa0\x80text"
	default:
		return strings.Repeat("0123456789abcdef", HugeBytes/16)
	}
}

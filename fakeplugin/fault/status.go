package fault

import "google.golang.org/grpc/codes"

// maxParamText bounds a text given as a parameter. Longer texts are made by hostile-text.
const maxParamText = 1024

// statuses are faults of answers that are no response.
func statuses() []Definition {
	return []Definition{
		{
			Name: "grpc-status", Scope: ScopeCall, Methods: Methods(), Default: Methods(),
			Summary: "The call fails with a gRPC status of any code and text.",
			Params: []Param{
				{Name: "code", Kind: KindCode, Default: codes.Unavailable.String(), Summary: "the gRPC code, by name or number (1 to 99; those above 16 are undefined)"},
				{Name: "text", Kind: KindString, Default: "injected failure", Max: maxParamText, Summary: "the status message"},
			},
			Shape: func(s *Strike) { s.Plan.Error = &Error{s.Fault.Code("code"), s.Fault.Text("text")} },
		},
		{
			Name: "decrypt-fails", Scope: ScopeCall, Methods: []Method{Decrypt}, Default: []Method{Decrypt},
			Summary: "Encrypt and Status are answered, but Decrypt fails, as with half of the permissions.",
			Params: []Param{
				{Name: "code", Kind: KindCode, Default: codes.PermissionDenied.String(), Summary: "the gRPC code"},
				{Name: "text", Kind: KindString, Default: "access denied: no permission to decrypt", Max: maxParamText, Summary: "the status message"},
			},
			Shape: func(s *Strike) { s.Plan.Error = &Error{s.Fault.Code("code"), s.Fault.Text("text")} },
		},
		{
			Name: "nil-response", Scope: ScopeCall, Methods: Methods(), Default: Methods(),
			Summary: "The call succeeds without a response.",
			Params: []Param{
				{Name: "form", Kind: KindEnum, Enum: []string{string(NilEmpty), string(NilNone)}, Default: string(NilEmpty),
					Summary: "empty: a message without fields, which is what a Go plugin sends for nil; none: status OK and no message"},
			},
			Shape: func(s *Strike) { s.Plan.Nil = NilForm(s.Fault.Text("form")) },
		},
	}
}

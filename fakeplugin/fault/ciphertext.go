package fault

import "strings"

// ciphertexts are faults of what Encrypt answers.
func ciphertexts() []Definition {
	kinds := []string{"single-label", "upper-case", "empty-key", "long-label", "long-name", "too-large", "control", "invalid-utf8"}
	return []Definition{
		{
			Name: "ciphertext-empty", Scope: ScopeCall, Methods: []Method{Encrypt}, Default: []Method{Encrypt},
			Summary: "Encrypt answers with an empty ciphertext.",
			Shape:   func(s *Strike) { s.Edit(Edit{Field: FieldCiphertext}) },
		},
		{
			Name: "ciphertext-oversized", Scope: ScopeCall, Methods: []Method{Encrypt}, Default: []Method{Encrypt},
			Summary: "Encrypt answers with a ciphertext longer than the 1024 bytes that are allowed.",
			Params:  []Param{sizeParam("ciphertext")},
			Shape:   func(s *Strike) { s.Edit(Edit{Field: FieldCiphertext, PadTo: s.Fault.Int("size")}) },
		},
		{
			Name: "annotations-invalid", Scope: ScopeCall, Methods: []Method{Encrypt}, Default: []Method{Encrypt},
			Summary: "Encrypt answers with an annotation that kube-apiserver must reject.",
			Params: []Param{{Name: "kind", Kind: KindEnum, Enum: kinds, Default: kinds[0],
				Summary: "what is wrong: the key has one label, capitals, nothing, a label of 64, a name of 254, a control character or invalid UTF-8, or all annotations exceed 32 KiB"}},
			Shape: func(s *Strike) { s.Edit(badAnnotation(s.Fault.Text("kind"))) },
		},
	}
}

// Limits of KMS v2 annotations: RFC 1123 labels of at most 63 characters, names of at most 253, 32 KiB in all. Each
// of these is one too many.
const (
	labelTooLong       = 64
	nameTooLong        = 254
	annotationsTooMany = 32<<10 + 1
)

func badAnnotation(kind string) Edit {
	const domain = ".fakeplugin.kmsharness.io"
	keys := map[string]string{ // that of empty-key is empty
		"single-label": "nodots",
		"upper-case":   "UPPER" + domain,
		"long-label":   strings.Repeat("a", labelTooLong) + domain,
		"long-name":    strings.Repeat("a.", (nameTooLong-len(domain))/2) + strings.Repeat("a", (nameTooLong-len(domain))%2+1) + domain[1:],
		"too-large":    "large" + domain,
		"control":      "a\nb\x00" + domain,
		"invalid-utf8": "\xff\xfe" + domain,
	}
	e := Edit{Field: FieldAnnotation, Annotation: keys[kind], Value: "x"}
	if kind == "too-large" {
		e.Value = strings.Repeat("x", annotationsTooMany)
	}
	return e
}

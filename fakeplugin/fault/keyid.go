package fault

import "errors"

// MaxValueBytes is what kube-apiserver accepts of a key_id and of a ciphertext (KMS v2: 1 KiB, inclusive).
const MaxValueBytes = 1024

func withKeyID() []Method { return []Method{Status, Encrypt} }

// keyIDs are faults of key_ids.
func keyIDs() []Definition {
	return []Definition{
		{
			Name: "key-id-empty", Scope: ScopeCall, Methods: withKeyID(), Default: withKeyID(),
			Summary: "The key_id is empty.",
			Shape:   func(s *Strike) { s.Edit(Edit{Field: FieldKeyID}) },
		},
		{
			Name: "key-id-oversized", Scope: ScopeCall, Methods: withKeyID(), Default: withKeyID(),
			Summary: "The key_id is longer than the 1024 bytes that are allowed.",
			Params:  []Param{sizeParam("key_id")},
			Shape:   func(s *Strike) { s.Edit(Edit{Field: FieldKeyID, PadTo: s.Fault.Int("size")}) },
		},
		{
			Name: "key-id-flip-flop", Scope: ScopeCall, Methods: withKeyID(), Default: withKeyID(),
			Summary: "The key_id alternates between another one and the true one, first the other one.",
			Params: []Param{
				{Name: "other", Kind: KindString, Default: "kek-f11bf10b", Max: MaxValueBytes, Summary: "the other key_id"},
				{Name: "every", Kind: KindInt, Default: 1, Min: 1, Max: 1e9, Summary: "Status calls between two changes"},
				{Name: "period", Kind: KindDuration, Max: 24 * hour, Summary: "change by time instead of calls: the time between two changes"},
			},
			Shape: func(s *Strike) {
				if s.flips()%2 == 0 {
					s.Edit(Edit{Field: FieldKeyID, Value: s.Fault.Text("other")})
				}
			},
		},
		{
			Name: "key-id-reused", Scope: ScopeCall, Methods: withKeyID(), Default: withKeyID(),
			Summary: "After a rotation the key_id is that of an earlier KEK, although new ciphertexts are made under the new one.",
			Params:  []Param{{Name: "version", Kind: KindInt, Default: 1, Min: 1, Max: 1e6, Summary: "the KEK version whose id is used again"}},
			Shape:   func(s *Strike) { s.Edit(Edit{Field: FieldKeyID, KEKVersion: s.Fault.Int("version")}) },
		},
		{
			Name: "key-id-mismatch", Scope: ScopeCall, Methods: withKeyID(), Default: []Method{Encrypt},
			Summary: "Status and Encrypt name different key_ids.",
			Params:  []Param{{Name: "key-id", Kind: KindString, Default: "kek-m15ma7c4", Max: MaxValueBytes, Summary: "the key_id of the methods that it strikes"}},
			Check: func(f Fault) error {
				if len(f.Methods) != 1 {
					return errors.New("method: expected Status or Encrypt alone, or the two would agree")
				}
				return nil
			},
			Shape: func(s *Strike) { s.Edit(Edit{Field: FieldKeyID, Value: s.Fault.Text("key-id")}) },
		},
	}
}

func sizeParam(of string) Param {
	return Param{Name: "size", Kind: KindInt, Default: MaxValueBytes + 1, Min: 1, Max: 1 << 20, Summary: "the length of the " + of + ", in bytes"}
}

// flips is how often the key_id has changed back and forth by now. Encrypt agrees with the Status before it.
func (s *Strike) flips() int {
	if period := s.Fault.Duration("period"); period > 0 {
		return int(s.Now.Sub(s.Injected) / period)
	}
	shown := s.StatusHits
	if s.Method != Status {
		shown = max(0, shown-1)
	}
	return shown / s.Fault.Int("every")
}

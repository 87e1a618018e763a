package controlplane

import "testing"

// FuzzDecode: each document of a manifest is an object with a name, or the file is refused.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: b}\n"))
	f.Add([]byte(`{"apiVersion":"v1","kind":"List","metadata":{"name":1}}`))
	f.Add([]byte("metadata: []\napiVersion: {}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		objects, err := Decode(text)
		if err != nil {
			return
		}
		for _, o := range objects {
			if o.GetName() == "" || o.GetKind() == "" {
				t.Errorf("an object without a name or kind: %v", o.Object)
			}
		}
	})
}

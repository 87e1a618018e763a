package plain_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/contract/plain"
)

func read(text string) (map[string]any, bool) {
	r := plain.Of(text)
	o := r.Object()
	return o, r.Whole()
}

// What is plain is what the library reads; nothing else is plain.
func FuzzObject(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":"b"}`, `{"a":"b\\\"\nc","d":[{"e":"f"},[],{}]}`, `{"a":1}`, `{"a":"b"} `, `{"a":"b","a":"c"}`, `{"a":"\u0041"}`, `{"a":"é"}`,
		`{"a":"b",}`, `{,"a":"b"}`, `{"a":["b",]}`, `{"a":["b"`, `{"a":"\`, "{\"a\":\"\x00\"}", `["a"]`, `{"a" :"b"}`, `{"a":null}`, ``} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if plain.Is(text) && !json.Valid([]byte(text)) {
			t.Fatalf("%q is no JSON", text)
		}
		got, ok := read(text)
		if ok && !plain.Is(text) {
			t.Fatalf("%q was read, and is not plain", text)
		}
		if !ok {
			return
		}
		var want map[string]any
		if err := json.Unmarshal([]byte(text), &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q\ngot  %v\nwant %v, %v", text, got, want, err)
		}
	})
}

func TestWhatIsPlain(t *testing.T) {
	for text, want := range map[string]bool{
		`{}`: true, `{"a":"b","c":[{"d":"e"}],"f":{},"g":[]}`: true, `{"a":"say \"b\" \\\n"}`: true,
		`{"a":1}`: false, `{"a":"b","a":"c"}`: false, `{"a":"\t"}`: false, `{"a":"é"}`: false, `{"a": "b"}`: false, `{"a":"b"}x`: false, `{`: false, ``: false, `[]`: false,
	} {
		if _, ok := read(text); ok != want {
			t.Errorf("%s: plain %v, expected %v", text, ok, want)
		}
	}
}

func TestFailIsForGood(t *testing.T) {
	r := plain.Of(`["a","b"]`)
	var got []string
	r.Items(func() { got = append(got, r.Text()); r.Fail() })
	if r.Whole() || r.Plain() || strings.Join(got, "") != "a" {
		t.Errorf("%v, whole %v", got, r.Whole())
	}
}

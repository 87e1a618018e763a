package check

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawn is JSON as it may stand in an audit log: mostly what reporters write, with fields that are missing, twice, unknown or of another
// kind.
func drawn(t *rapid.T) string {
	texts := rapid.SampledFrom([]string{`""`, `"a"`, `"KMSHealthReporter_a"`, `"[{\"keyID\":\"1\"}]"`, `"\\"`, `"é"`, `"\n"`, `7`, `null`})
	fields := func(names ...string) string {
		out := "{"
		for range rapid.IntRange(0, len(names)).Draw(t, "fields") {
			if out != "{" {
				out += ","
			}
			out += `"` + rapid.SampledFrom(names).Draw(t, "name") + `":` + texts.Draw(t, "text")
		}
		return out + "}"
	}
	list := func(names ...string) string {
		out := "["
		for i := range rapid.IntRange(0, 2).Draw(t, "items") {
			if i > 0 {
				out += ","
			}
			out += fields(names...)
		}
		return out + rapid.SampledFrom([]string{"]", "]", "]", "] ", ""}).Draw(t, "end")
	}
	condition := []string{"type", "status", "reason", "message", "lastTransitionTime", "Type", "x"}
	report := []string{"nodeName", "keyID", "status", "lastCheckedTime", "remoteKeyID", "detail", "y"}
	status := rapid.SampledFrom([]string{"", `"conditions":` + list(condition...), `"encryptionStatus":{"healthReports":` + list(report...) + `}`,
		`"oauthAPIServer":{"encryptionStatus":{"healthReports":` + list(report...) + `}}`, `"conditions":` + list(condition...) + `,"conditions":` + list(condition...),
		`"other":[]`, `"conditions":` + list(condition...) + `,"encryptionStatus":{"healthReports":` + list(report...) + `}`})
	return rapid.SampledFrom([]string{
		`{"apiVersion":"v1","kind":"K","metadata":` + fields("name") + `,"status":{` + status.Draw(t, "status") + `}}`,
		`{"status":{` + status.Draw(t, "status") + `},"spec":{}}`, `[]`, `{}`, ``,
		list("keyID", "kekID", "status", "lastChecked", "detail", "KeyID"),
	}).Draw(t, "body")
}

func TestPlainIsWhatTheLibraryReads(t *testing.T) {
	read := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		text := drawn(t)
		got, ok := plainBody(text)
		read[ok]++
		if want := libraryBody(json.RawMessage(text)); ok && !(got.ok == want.ok && len(want.other) == 0 &&
			same(got.conditions, want.conditions) && same(got.typed, want.typed)) {
			t.Fatalf("%s\ngot  %+v\nwant %+v", text, got, want)
		}
		var want []wire
		items, ok := plainWires(text)
		if err := json.Unmarshal([]byte(text), &want); ok && (err != nil || !same(items, want)) {
			t.Fatalf("%s\ngot  %+v\nwant %+v, %v", text, items, want, err)
		}
	})
	if !testing.Short() && (read[true] == 0 || read[false] == 0) { // -short draws a fifth
		t.Errorf("plain and not: %v, expected some of each", read)
	}
}

// A message that is read plainly is judged as the library's reading of it is.
func TestPlainMessageIsJudgedAlike(t *testing.T) {
	read := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		message := "["
		for i := range rapid.IntRange(0, 3).Draw(t, "entries") {
			if i > 0 {
				message += ","
			}
			message += "{"
			fields := []string{`"keyID":"1"`, `"kekID":"k"`, `"status":"error"`, `"lastChecked":"2026-05-08T12:34:56Z"`, `"detail":"d"`}
			for range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "changes") {
				fields[rapid.IntRange(0, 4).Draw(t, "which")] = rapid.SampledFrom([]string{`"keyID":"2"`, `"kekID":""`, `"status":"healthy"`,
					`"status":"x"`, `"lastChecked":"x"`, `"detail":"\\"`, `"x":"y"`, ``}).Draw(t, "to")
			}
			message += strings.Join(slices.DeleteFunc(fields, func(f string) bool { return f == "" }), ",") + "}"
		}
		message += "]"
		items, ok := plainMessage(message)
		read[ok]++
		if !ok {
			return
		}
		var got, want []string
		for _, item := range items {
			judgeFields(item.wire, item.hasKEK, item.hasDetail, func(seen, allowed string) { got = append(got, seen+allowed) })
		}
		if judgeMessage(message, func(seen, allowed string) { want = append(want, seen+allowed) }); !same(got, want) {
			t.Fatalf("%s\ngot  %q\nwant %q", message, got, want)
		}
	})
	if !testing.Short() && (read[true] == 0 || read[false] == 0) { // -short draws a fifth
		t.Errorf("plain and not: %v, expected some of each", read)
	}
}

func same[T any](a, b []T) bool { return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b) }

package contract

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// oneShortLine is what every error about untrusted input must be.
func oneShortLine(t *testing.T, err error) {
	t.Helper()
	if text := err.Error(); len(text) > 1000 || strings.ContainsAny(text, "\n\r\x00") || !utf8.ValidString(text) {
		t.Fatalf("the error is not one short line: %q", text)
	}
}

// FuzzDecodeMessage: any message is refused as malformed or becomes entries that are within the limits, encode again,
// and then read back the same.
func FuzzDecodeMessage(f *testing.F) {
	f.Add(`[{"keyID":"2","kekID":"kek-9f2c","status":"healthy","lastChecked":"2026-05-08T12:34:56Z"}]`)
	f.Add(`[{"x":1,"lastChecked":"2026-05-08T14:34:56.1234567+02:00","status":"error","detail":"a\nb\u202e","keyID":"1"}]`)
	f.Add(`[{"keyID":"2","keyID":"3","kekID":"a\"b\\","detail":""}]`)
	f.Fuzz(func(t *testing.T, message string) {
		entries, err := DecodeMessage(message)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("not ErrMalformed: %v", err)
			}
			oneShortLine(t, err)
			return
		}
		again, err := EncodeMessage(entries)
		if err != nil {
			t.Fatalf("what was decoded does not encode: %v", err)
		}
		for i := range entries { // the wire form has milliseconds
			entries[i].LastChecked = entries[i].LastChecked.Truncate(time.Millisecond)
		}
		if back, err := DecodeMessage(again); err != nil || !reflect.DeepEqual(back, entries) {
			t.Fatalf("%s\nreads back as %+v, %v, expected %+v", again, back, err, entries)
		}
	})
}

// FuzzEncodeMessage: whatever a plugin sent, what is written is minified JSON within the limits and reads back as what
// was meant.
func FuzzEncodeMessage(f *testing.F) {
	f.Add("2", "kek-1", "healthy", "", int64(1778243696000))
	f.Add("1", "k\x00\xff", "error", "a\n\"}]\u202e", int64(-1))
	f.Fuzz(func(t *testing.T, keyID, kekID, status, detail string, unixMilli int64) {
		e := Entry{keyID, kekID, Status(status), time.UnixMilli(unixMilli), detail}
		message, err := EncodeMessage([]Entry{e, healthy("other", "k")})
		if err != nil {
			oneShortLine(t, err)
			return
		}
		if err := checkMessage(message); err != nil {
			t.Fatalf("%v: %q", err, message)
		}
		want := e.bounded()
		want.LastChecked = e.LastChecked.UTC()
		if back, err := DecodeMessage(message); err != nil || !reflect.DeepEqual(back[0], want) {
			t.Fatalf("%s\nreads back as %+v, %v, expected %+v", message, back, err, want)
		}
		if utf8.ValidString(kekID) && len(kekID) <= MaxKEKIDBytes && want.KEKID != kekID {
			t.Fatalf("kekID %q was changed to %q", kekID, want.KEKID)
		}
		if err := checkSafe(want.Detail, MaxDetailChars); err != nil {
			t.Fatalf("detail %q: %v", want.Detail, err)
		}
	})
}

// FuzzSafeText: any text becomes a safe one within any limit, and a safe one stays as it is.
func FuzzSafeText(f *testing.F) {
	f.Add("line\r\n\x1b[31m\u202e\xff", 1024)
	f.Add("exactly ten!", 11)
	f.Fuzz(func(t *testing.T, text string, maxChars int) {
		safe := SafeText(text, maxChars)
		if err := checkSafe(safe, maxChars); err != nil {
			t.Fatalf("SafeText(%q, %d) = %q: %v", text, maxChars, safe, err)
		}
		if again := SafeText(safe, maxChars); again != safe {
			t.Fatalf("not idempotent: %q becomes %q", safe, again)
		}
		if checkSafe(text, maxChars) == nil && safe != text {
			t.Fatalf("%q was safe and became %q", text, safe)
		}
	})
}

// FuzzTyped: whatever a plugin sent, the real CRD takes the item; and any item is refused as malformed or read.
func FuzzTyped(f *testing.F) {
	list := realList(f, kubeAPIServerCRD, "status", "encryptionStatus", "healthReports")
	f.Add("2", "kek-1", "healthy", "", int64(1778243696000), "", "2026-05-08T12:34:56Z")
	f.Add("1", "\x00", "error", "\n", int64(1), "last\xff", "soon")
	f.Fuzz(func(t *testing.T, keyID, kekID, status, detail string, unixMilli int64, last, at string) {
		if e, err := (TypedReport{"cp-1", keyID, status, at, kekID, detail}).Untyped(); err != nil {
			oneShortLine(t, err)
		} else if _, err := EncodeMessage([]Entry{e}); err != nil {
			t.Fatalf("an item was read as %+v, which does not encode: %v", e, err)
		}
		r := Report{"cp-1", []Entry{{keyID, kekID, Status(status), time.UnixMilli(unixMilli), detail}}}
		items, err := r.Typed(map[string]string{keyID: last})
		if err != nil {
			oneShortLine(t, err)
			return
		}
		if err := list.violation(items[0]); err != nil {
			t.Fatalf("the API server would reject %+v: %v", items[0], err)
		}
		back, err := items[0].Untyped()
		if err != nil || back.Status != r.Entries[0].Status || back.Detail != r.Entries[0].bounded().Detail || !back.LastChecked.Equal(r.Entries[0].LastChecked) {
			t.Fatalf("%+v is read as %+v, %v", items[0], back, err)
		}
	})
}

package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var checked = time.Date(2026, 5, 8, 12, 34, 56, 0, time.UTC)

func healthy(keyID, kekID string) Entry {
	return Entry{KeyID: keyID, KEKID: kekID, Status: StatusHealthy, LastChecked: checked}
}

// checkMessage says what is wrong with a message that EncodeMessage may have made.
func checkMessage(message string) error {
	var compact bytes.Buffer
	switch {
	case !utf8.ValidString(message):
		return errors.New("not valid UTF-8")
	case len(message) > MaxMessageBytes:
		return fmt.Errorf("%d bytes, more than readers read", len(message))
	case strings.ContainsAny(message, "\n\r"):
		return errors.New("more than one line")
	case json.Compact(&compact, []byte(message)) != nil:
		return errors.New("not JSON")
	case compact.String() != message:
		return errors.New("not minified")
	}
	return nil
}

func TestEncodeIsTheContractsExample(t *testing.T) {
	got, err := EncodeMessage([]Entry{healthy("2", "kek-9f2c")})
	want := `[{"keyID":"2","kekID":"kek-9f2c","status":"healthy","lastChecked":"2026-05-08T12:34:56Z"}]`
	if err != nil || got != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

func TestRoundTripKeepsOrderAndEveryField(t *testing.T) {
	entries := []Entry{
		healthy("9", "kek<&>\"\x00\x7f\u2028"), // verbatim: identities compare exactly
		{KeyID: "10", KEKID: "k", Status: StatusUnhealthy, LastChecked: checked.Add(123 * time.Millisecond), Detail: "HSM \"sealed\""},
		{KeyID: "1", Status: StatusError, LastChecked: checked, Detail: "Unavailable: connection refused"},
	}
	message, err := EncodeMessage(entries)
	if err == nil {
		err = checkMessage(message)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, message)
	}
	if got, err := DecodeMessage(message); err != nil || !reflect.DeepEqual(got, entries) {
		t.Errorf("%s\nreads back as %+v, %v", message, got, err)
	}
}

func TestDecodeAcceptsAnyOrderAndUnknownFields(t *testing.T) {
	got, err := DecodeMessage(` [ {"new":{"a":[1]},"lastChecked":"2026-05-08T14:34:56+02:00", "status":"healthy","detail":null,"kekID":"k","keyID":"2"} ] `)
	if err != nil || !reflect.DeepEqual(got, []Entry{healthy("2", "k")}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestDecodeBoundsWhatOthersWrote(t *testing.T) {
	long := strings.Repeat("ä", MaxDetailChars+1)
	got, err := DecodeMessage(fmt.Sprintf(`[{"keyID":"1","kekID":%q,"status":"error","lastChecked":"2026-05-08T12:34:56Z","detail":"a\nb%s"},`+
		`{"keyID":"2","status":"healthy","lastChecked":"2026-05-08T12:34:56Z","detail":"why?"}]`, strings.Repeat("k", MaxKEKIDBytes+1), long))
	if err != nil {
		t.Fatal(err)
	}
	if got[0].KEKID != "" || utf8.RuneCountInString(got[0].Detail) > MaxDetailChars || !strings.HasPrefix(got[0].Detail, "a b") || !strings.HasSuffix(got[0].Detail, CutMark) {
		t.Errorf("%d bytes of kekID, detail %.20q", len(got[0].KEKID), got[0].Detail)
	}
	if got[1].Detail != "" {
		t.Errorf("a healthy entry has the detail %q", got[1].Detail)
	}
}

func TestMalformedMessages(t *testing.T) {
	entry := func(text string) string { return "[{" + text + "}]" }
	good := `"keyID":"1","status":"healthy","lastChecked":"2026-05-08T12:34:56Z"`
	for name, tt := range map[string]struct{ message, want string }{
		"empty":               {"", "not a JSON array"},
		"not JSON":            {"healthy", "not a JSON array"},
		"object":              {"{" + good + "}", "not a JSON array"},
		"cut off":             {"[{" + good, "not a JSON array"},
		"two arrays":          {"[{" + good + "}][]", "not a JSON array"},
		"wrong type":          {entry(`"keyID":1`), "not a JSON array"},
		"no entry":            {"[]", "holds no entry"},
		"null":                {"null", "holds no entry"},
		"null entry":          {"[null]", "entry 0: lastChecked"},
		"no keyID":            {entry(strings.Replace(good, `"1"`, `""`, 1)), "keyID is empty"},
		"long keyID":          {entry(strings.Replace(good, `"1"`, `"`+strings.Repeat("1", MaxKeyIDChars+1)+`"`, 1)), "at most 512 characters"},
		"same keyID twice":    {"[{" + good + "},{" + good + "}]", `keyID "1" occurs twice`},
		"unknown status":      {entry(strings.Replace(good, "healthy", "Healthy", 1)), `status "Healthy"`},
		"no lastChecked":      {entry(`"keyID":"1","status":"healthy"`), "lastChecked"},
		"time without zone":   {entry(strings.Replace(good, "56Z", "56", 1)), "not RFC 3339 with a zone"},
		"zero time":           {entry(strings.Replace(good, "2026-05-08T12:34:56Z", "0001-01-01T00:00:00Z", 1)), "lastChecked is missing"},
		"year 10000 in UTC":   {entry(strings.Replace(good, "2026-05-08T12:34:56Z", "9999-12-31T23:59:59-01:00", 1)), "year 10000"},
		"before 1970":         {entry(strings.Replace(good, "2026", "1969", 1)), "year 1969"},
		"too many entries":    {"[" + strings.Repeat("{"+good+"},", MaxEntries) + "{" + good + "}]", "33 entries"},
		"too long":            {strings.Repeat(" ", MaxMessageBytes+1), "at most 64512 are read"},
		"hostile in an error": {entry(strings.Replace(good, "healthy", `a\nb\u001b[31m`, 1)), `status "a b [31m"`},
	} {
		_, err := DecodeMessage(tt.message)
		if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, expected a malformed report with %q", name, err, tt.want)
		} else if len(err.Error()) > 400 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the error is not one short line: %q", name, err)
		}
	}
}

func TestEncodeRefusesWhatNobodyCouldMean(t *testing.T) {
	for name, entries := range map[string][]Entry{
		"no keyID":         {{Status: StatusHealthy, LastChecked: checked}},
		"invalid keyID":    {{KeyID: "\xff", Status: StatusHealthy, LastChecked: checked}},
		"same keyID twice": {healthy("1", "k"), healthy("1", "k")},
		"unknown status":   {{KeyID: "1", Status: "fine", LastChecked: checked}},
		"no time":          {{KeyID: "1", Status: StatusHealthy}},
		"year 10000":       {{KeyID: "1", Status: StatusHealthy, LastChecked: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}},
		"too many":         make([]Entry, MaxEntries+1),
	} {
		if message, err := EncodeMessage(entries); err == nil {
			t.Errorf("%s was encoded: %s", name, message)
		}
	}
}

func TestLargestReportIsReadable(t *testing.T) {
	entries := make([]Entry, 4) // with every field at its limit, and every character escaped
	for i := range entries {
		entries[i] = Entry{KeyID: strings.Repeat("\x01", MaxKeyIDChars-1) + string(rune('a'+i)), KEKID: strings.Repeat("\x01", MaxKEKIDBytes),
			Status: StatusUnhealthy, LastChecked: checked, Detail: strings.Repeat("\U0001f511", MaxDetailChars)}
	}
	message, err := EncodeMessage(entries)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeMessage(message); err != nil || !reflect.DeepEqual(got, entries) {
		t.Errorf("%d bytes: %v", len(message), err)
	}
}

// TestCheckMessageFindsBadOnes is the known-bad subject of checkMessage.
func TestCheckMessageFindsBadOnes(t *testing.T) {
	for _, bad := range []string{"[\n]", "[ ]", "\xff", "[", `{"a": 1}`, `"` + strings.Repeat("x", MaxMessageBytes) + `"`} {
		if checkMessage(bad) == nil {
			t.Errorf("%.20q passed", bad)
		}
	}
}

func TestRoundTime(t *testing.T) {
	at := time.Date(2026, 5, 8, 14, 34, 56, 789654321, time.FixedZone("", 7200))
	for interval, want := range map[time.Duration]string{
		PreciseInterval: "2026-05-08T12:34:56Z", 30 * time.Second: "2026-05-08T12:34:56Z",
		PreciseInterval - 1: "2026-05-08T12:34:56.789Z", time.Second: "2026-05-08T12:34:56.789Z",
	} {
		if got := FormatTime(RoundTime(at, interval)); got != want {
			t.Errorf("interval %v: %s, expected %s", interval, got, want)
		}
	}
	if got := FormatTime(at); got != "2026-05-08T12:34:56.789Z" {
		t.Errorf("FormatTime: %s", got)
	}
}

func BenchmarkEncodeMessage(b *testing.B) {
	entries := []Entry{healthy("2", "kek-9f2c"), {KeyID: "1", Status: StatusError, LastChecked: checked, Detail: "Unavailable: connection refused"}}
	for b.Loop() {
		if _, err := EncodeMessage(entries); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeMessage(b *testing.B) {
	message, err := EncodeMessage([]Entry{healthy("2", "kek-9f2c"), {KeyID: "1", Status: StatusError, LastChecked: checked, Detail: "Unavailable: connection refused"}})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := DecodeMessage(message); err != nil {
			b.Fatal(err)
		}
	}
}

// Whatever the plugins of a node say, its report keeps to its bytes in either form, and every plugin is in it.
func TestReportKeepsToItsBytes(t *testing.T) {
	for name, text := range map[string]string{"ASCII": "x", "escaped": "\"", "wide": "\U0001F600", "a control character": "\x01"} {
		r := Report{Node: "cp-1"}
		for i := range MaxEntries {
			r.Entries = append(r.Entries, Entry{KeyID: strconv.Itoa(i), KEKID: strings.Repeat(text, MaxKEKIDBytes/len(text)), Status: StatusError,
				LastChecked: checked, Detail: "d" + strings.Repeat(text, MaxDetailChars)})
		}
		message, err := EncodeMessage(r.Entries)
		if err != nil || len(message) > MaxMessageBytes {
			t.Errorf("%s: a message of %d bytes, %v", name, len(message), err)
		}
		back, err := DecodeMessage(message)
		if err != nil || len(back) != MaxEntries || !strings.HasPrefix(back[MaxEntries-1].Detail, "d") {
			t.Errorf("%s: reads back as %d entries, %v", name, len(back), err)
		}
		items, err := r.Typed(nil)
		bytes := 0
		for _, i := range items {
			bytes += len(i.KeyID) + len(i.RemoteKeyID) + len(i.Detail)
		}
		if err != nil || len(items) != MaxEntries || bytes > MaxReportBytes {
			t.Errorf("%s: %d items of %d bytes, %v", name, len(items), bytes, err)
		}
	}
	two := []Entry{{KeyID: "1", Status: StatusError, LastChecked: checked, Detail: strings.Repeat("\U0001F600", MaxDetailChars)}, healthy("2", strings.Repeat("k", MaxKEKIDBytes))}
	message, err := EncodeMessage(two)
	if err != nil || len(message) < 4*MaxDetailChars+MaxKEKIDBytes {
		t.Errorf("what fits is cut to %d bytes, %v", len(message), err)
	}
}

package facts

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kmsharness/kmsharness/contract"
)

// Entry is one plugin's answer as a reader sees it, from either wire form.
type Entry struct {
	KeyID, KEKID string
	Status       contract.Status
	Detail       string
	Checked      time.Time
	CheckedText  string
	Precision    time.Duration // what the text leaves open
}

// WireEntry is an entry of a message. Readers ignore unknown fields and accept any order (contract, "The reporter").
type WireEntry struct {
	KeyID       string `json:"keyID"`
	KEKID       string `json:"kekID"`
	Status      string `json:"status"`
	LastChecked string `json:"lastChecked"`
	Detail      string `json:"detail"`
}

// DecodeMessage reads a message as leniently as a reader must; problem says why it cannot be believed. One bad entry
// makes the whole message unbelievable, because its writer does not keep the form. FORMAT judges more strictly what
// writers may send.
func DecodeMessage(message string) (entries []Entry, problem string) {
	if len(message) > contract.MaxMessageBytes {
		return nil, "message is too long"
	}
	var items []WireEntry
	if err := json.Unmarshal([]byte(message), &items); err != nil {
		return nil, "message is not a JSON array of entries"
	}
	if len(items) == 0 || len(items) > contract.MaxEntries {
		return nil, "message holds no entry, or too many"
	}
	for _, w := range items {
		e, problem := DecodeEntry(w)
		if problem != "" {
			return nil, problem
		}
		if slices.ContainsFunc(entries, func(o Entry) bool { return o.KeyID == e.KeyID }) {
			return nil, "a keyID occurs twice"
		}
		entries = append(entries, e)
	}
	return entries, ""
}

// BadTime is the problem of an entry whose age cannot be told. An aggregator must not take it for fresh.
const BadTime = "lastChecked is not RFC 3339 with a zone"

// DecodeEntry reads an entry; problem says why it cannot be believed.
func DecodeEntry(w WireEntry) (e Entry, problem string) {
	checked, precision, ok := ParseInstant(w.LastChecked)
	e = Entry{w.KeyID, w.KEKID, contract.Status(w.Status), w.Detail, checked, w.LastChecked, precision}
	switch {
	case w.KeyID == "" || utf8.RuneCountInString(w.KeyID) > contract.MaxKeyIDChars:
		return e, "keyID is empty or too long"
	case e.Status != contract.StatusHealthy && e.Status != contract.StatusUnhealthy && e.Status != contract.StatusError:
		return e, "status is none of healthy, unhealthy, error"
	case !ok:
		return e, BadTime
	}
	if len(e.KEKID) > contract.MaxKEKIDBytes {
		e.KEKID = ""
	}
	return e, ""
}

// DecodeTyped reads one item of the typed list. The CRD requires remoteKeyID: for a plugin that failed it is the last
// known one, or "unknown". Neither is an answer, so both are dropped, and both forms compare alike.
func DecodeTyped(t contract.TypedReport) (Entry, string) {
	status := map[string]contract.Status{"Healthy": contract.StatusHealthy, "Unhealthy": contract.StatusUnhealthy,
		"Error": contract.StatusError}[t.Status]
	kek := t.RemoteKeyID
	if kek == contract.UnknownKEKID || status == contract.StatusError {
		kek = ""
	}
	return DecodeEntry(WireEntry{t.KeyID, kek, string(status), t.LastCheckedTime, t.Detail})
}

// ParseInstant reads RFC 3339 and returns how much of the time its text leaves open: a second without a fraction, else
// the last digit, and a millisecond at most.
func ParseInstant(text string) (at time.Time, precision time.Duration, ok bool) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.IsZero() {
		return time.Time{}, 0, false
	}
	precision = time.Second
	if _, fraction, ok := strings.Cut(text, "."); ok {
		for range len(fraction) - len(strings.TrimLeft(fraction, "0123456789")) {
			precision /= 10
		}
	}
	// FormatTime drops trailing zeros, so a shorter fraction is no less precise than a millisecond.
	if precision < time.Second {
		precision = min(precision, time.Millisecond)
	}
	return at.UTC(), max(precision, 1), true
}

package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// ErrMalformed is wrapped by every decoding error: the report exists but cannot be believed.
var ErrMalformed = errors.New("malformed report")

// wireEntry is the JSON of one entry. Field order is the contract's; readers accept any.
type wireEntry struct {
	KeyID       string `json:"keyID"`
	KEKID       string `json:"kekID,omitempty"`
	Status      Status `json:"status"`
	LastChecked string `json:"lastChecked"`
	Detail      string `json:"detail,omitempty"`
}

// EncodeMessage is the condition message of a report: one minified JSON array in the given order. Whatever the
// entries hold, what it returns decodes again and keeps to the limits; it fails only for entries that no reporter
// could mean (no keyID, the same keyID twice, more than MaxEntries, an unknown status, keyIDs of thousands of bytes).
func EncodeMessage(entries []Entry) (string, error) {
	if err := validateEntries(entries); err != nil {
		return "", fmt.Errorf("encode report: %w", err)
	}
	bounded := make([]Entry, len(entries))
	for i, e := range entries {
		bounded[i] = e.bounded()
	}
	message, err := encodeWithin(bounded)
	if err != nil {
		return "", fmt.Errorf("encode report: %w", err)
	}
	return message, nil
}

// encodeWithin encodes entries in at most MaxMessageBytes. If they have more, it changes them: each gets an equal share, in which its detail is cut first.
func encodeWithin(entries []Entry) (string, error) {
	message, err := encode(entries)
	if err != nil || len(message) <= MaxMessageBytes {
		return message, err
	}
	for i := range entries {
		if entries[i], err = entries[i].within(MaxMessageBytes/len(entries) - 1); err != nil {
			return "", err
		}
	}
	if message, err = encode(entries); err == nil && len(message) > MaxMessageBytes {
		return "", fmt.Errorf("%d bytes, at most %d are allowed", len(message), MaxMessageBytes)
	}
	return message, err
}

// within shortens the detail of e until its message has at most limit bytes. Where a detail of minDetailChars is too long, it drops the kekID.
func (e Entry) within(limit int) (Entry, error) {
	for chars := MaxDetailChars / 2; ; chars /= 2 {
		message, err := encode([]Entry{e})
		switch {
		case err != nil || len(message) <= limit:
			return e, err
		case chars >= minDetailChars:
			e.Detail = SafeText(e.Detail, chars)
		case e.KEKID != "":
			e.KEKID = ""
		default:
			return e, nil // the sum is checked
		}
	}
}

// minDetailChars is what a detail is not cut below.
const minDetailChars = 16

func encode(entries []Entry) (string, error) {
	wire := make([]wireEntry, len(entries))
	for i, e := range entries {
		wire[i] = wireEntry{e.KeyID, e.KEKID, e.Status, FormatTime(e.LastChecked), e.Detail}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // shorter, and the message is never HTML
	if err := enc.Encode(wire); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// DecodeMessage reads a condition message. Unknown fields are ignored and any field order is accepted; texts are
// made safe and cut to their limits, since the writer may be anyone. Every error wraps ErrMalformed.
func DecodeMessage(message string) ([]Entry, error) {
	if len(message) > MaxMessageBytes {
		return nil, fmt.Errorf("%w: message is %d bytes, at most %d are read", ErrMalformed, len(message), MaxMessageBytes)
	}
	var wire []wireEntry
	if err := json.Unmarshal([]byte(message), &wire); err != nil {
		return nil, fmt.Errorf("%w: message is not a JSON array of entries: %s", ErrMalformed, SafeText(err.Error(), 200))
	}
	if len(wire) == 0 {
		return nil, fmt.Errorf("%w: message holds no entry", ErrMalformed)
	}
	entries := make([]Entry, len(wire))
	for i, w := range wire {
		at, err := ParseTime(w.LastChecked)
		if err != nil {
			return nil, fmt.Errorf("%w: entry %d: %s", ErrMalformed, i, err)
		}
		entries[i] = Entry{w.KeyID, w.KEKID, w.Status, at, w.Detail}.bounded()
	}
	if err := validateEntries(entries); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return entries, nil
}

// bounded is e within the limits of both wire forms.
func (e Entry) bounded() Entry {
	e.Detail = SafeDetail(e.Detail)
	if e.Status == StatusHealthy {
		e.Detail = ""
	}
	e.KEKID = boundedKEKID(e.KEKID)
	return e
}

// boundedKEKID is empty for a kekID that is not usable; the reporter says so in detail.
func boundedKEKID(kekID string) string {
	kekID = strings.ToValidUTF8(kekID, "�")
	if len(kekID) > MaxKEKIDBytes {
		return ""
	}
	return kekID
}

func validateEntries(entries []Entry) error {
	if len(entries) > MaxEntries {
		return fmt.Errorf("%d entries, at most %d are allowed", len(entries), MaxEntries)
	}
	seen := make(map[string]bool, len(entries))
	for i, e := range entries {
		switch {
		case e.KeyID == "":
			return fmt.Errorf("entry %d: keyID is empty", i)
		case utf8.RuneCountInString(e.KeyID) > MaxKeyIDChars || !utf8.ValidString(e.KeyID):
			return fmt.Errorf("entry %d: keyID is not valid UTF-8 of at most %d characters", i, MaxKeyIDChars)
		case seen[e.KeyID]:
			return fmt.Errorf("entry %d: keyID %q occurs twice", i, SafeText(e.KeyID, 64))
		case !e.Status.Valid():
			return fmt.Errorf("entry %d: status %q, expected healthy, unhealthy or error", i, SafeText(string(e.Status), 64))
		case e.LastChecked.IsZero():
			return fmt.Errorf("entry %d: lastChecked is missing", i)
		case e.LastChecked.UTC().Year() < 1970 || e.LastChecked.UTC().Year() > 9999: // RFC 3339 has four digits
			return fmt.Errorf("entry %d: lastChecked is in the year %d, expected 1970 to 9999", i, e.LastChecked.UTC().Year())
		}
		seen[e.KeyID] = true
	}
	return nil
}

// FormatTime writes an instant as RFC 3339 in UTC. Whole seconds are written without a fraction, as in the
// contract's example; a reporter with a short interval keeps milliseconds, because with an interval of 1 s a
// rounding of up to 1 s would eat a quarter of the staleness threshold (docs/decisions/0001-form-of-reports.md).
func FormatTime(t time.Time) string {
	return t.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano)
}

// PreciseInterval is the interval from which on whole seconds are precise enough: a lost second is then at most a
// tenth of it, as much as jitter may move a tick anyway.
const PreciseInterval = 10 * time.Second

// RoundTime is the precision in which a reporter with the given interval writes lastChecked.
func RoundTime(t time.Time, interval time.Duration) time.Time {
	if interval >= PreciseInterval {
		return t.UTC().Truncate(time.Second)
	}
	return t.UTC().Truncate(time.Millisecond)
}

// ParseTime reads an RFC 3339 instant; a time without a zone is an error, since nobody can compare it.
func ParseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("lastChecked %q is not RFC 3339 with a zone", SafeText(s, 64))
	}
	return t.UTC(), nil
}

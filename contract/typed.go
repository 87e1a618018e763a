package contract

import (
	"fmt"
)

// TypedReport is one item of status.encryptionStatus.healthReports. It mirrors operator/v1 KMSPluginHealthReport
// of github.com/openshift/api, whose package is not imported here because its dependencies alone would cost a
// reporter a quarter of its memory budget; a test compares the two field by field.
type TypedReport struct {
	NodeName        string `json:"nodeName"`
	KeyID           string `json:"keyID"`
	Status          string `json:"status"`
	LastCheckedTime string `json:"lastCheckedTime"`
	RemoteKeyID     string `json:"remoteKeyID"`
	Detail          string `json:"detail,omitempty"`
}

// typedStatus maps the outcome of a probe to the typed API's enum.
func typedStatus(s Status) string {
	switch s {
	case StatusHealthy:
		return "Healthy"
	case StatusUnhealthy:
		return "Unhealthy"
	default:
		return "Error"
	}
}

// Typed is r in the typed form, within the CRD's limits whatever r holds: one invalid item would make the API
// server reject the whole apply. lastKEKID gives the last key_id that a plugin reported since start, by keyID; the
// typed form requires one even for a plugin that failed.
func (r Report) Typed(lastKEKID map[string]string) ([]TypedReport, error) {
	if err := validateEntries(r.Entries); err != nil {
		return nil, fmt.Errorf("typed report of node %s: %w", r.Node, err)
	}
	entries := make([]Entry, len(r.Entries))
	for i, e := range r.Entries {
		entries[i] = e.bounded()
		entries[i].KEKID = firstNonEmpty(entries[i].KEKID, boundedKEKID(lastKEKID[e.KeyID]))
	}
	if _, err := encodeWithin(entries); err != nil { // as a message, items have no fewer bytes
		return nil, fmt.Errorf("typed report of node %s: %w", r.Node, err)
	}
	out := make([]TypedReport, len(entries))
	for i, e := range entries {
		out[i] = TypedReport{r.Node, e.KeyID, typedStatus(e.Status), FormatTime(e.LastChecked), firstNonEmpty(e.KEKID, UnknownKEKID), e.Detail}
	}
	return out, nil
}

// Untyped is the entry that a typed item stands for. An item that failed may carry a key_id from before it failed,
// so only a healthy or unhealthy item's remoteKeyID is believed. Errors wrap ErrMalformed.
func (t TypedReport) Untyped() (Entry, error) {
	at, err := ParseTime(t.LastCheckedTime)
	if err != nil {
		return Entry{}, fmt.Errorf("%w: %s/%s: %s", ErrMalformed, SafeText(t.NodeName, 64), SafeText(t.KeyID, 64), err)
	}
	e := Entry{KeyID: t.KeyID, Status: untypedStatus(t.Status), LastChecked: at, Detail: t.Detail}
	if t.RemoteKeyID != UnknownKEKID && e.Status != StatusError {
		e.KEKID = t.RemoteKeyID
	}
	e = e.bounded()
	if err := validateEntries([]Entry{e}); err != nil {
		return Entry{}, fmt.Errorf("%w: %s: %w", ErrMalformed, SafeText(t.NodeName, 64), err)
	}
	return e, nil
}

// untypedStatus is the inverse of typedStatus; what is not in the enum stays as it is and fails validation.
func untypedStatus(typed string) Status {
	for _, s := range []Status{StatusHealthy, StatusUnhealthy, StatusError} {
		if typedStatus(s) == typed {
			return s
		}
	}
	return Status(typed)
}

func firstNonEmpty(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

package core

import (
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

func TestOutcomeTable(t *testing.T) {
	at := time.Date(2026, 5, 8, 12, 34, 56, 789654321, time.UTC)
	answer := func(version, healthz, keyID string) *Answer { return &Answer{version, healthz, keyID} }
	long := strings.Repeat("k", contract.MaxKEKIDBytes+1)
	tests := []struct {
		name    string
		answer  *Answer
		failure *Failure
		status  contract.Status
		kekID   string
		detail  string // a part of it
	}{
		{"healthy", answer("v2", "ok", "kek-1"), nil, contract.StatusHealthy, "kek-1", ""},
		{"healthy beta", answer("v2beta1", "ok", "kek-1"), nil, contract.StatusHealthy, "kek-1", ""},
		{"largest key_id", answer("v2", "ok", long[1:]), nil, contract.StatusHealthy, long[1:], ""},
		{"healthz text", answer("v2", "HSM is sealed", "kek-1"), nil, contract.StatusUnhealthy, "kek-1", "HSM is sealed"},
		{"healthz text, no key_id", answer("v2", "sealed", ""), nil, contract.StatusUnhealthy, "", "sealed"},
		{"healthz text, key_id too long", answer("v2", "sealed", long), nil, contract.StatusUnhealthy, "", "sealed"},
		{"healthz in capitals", answer("v2", "OK", "kek-1"), nil, contract.StatusUnhealthy, "kek-1", "OK"},
		{"healthz with a blank", answer("v2", " ok", "kek-1"), nil, contract.StatusUnhealthy, "kek-1", `expected exactly "ok"`},
		{"healthz with a NUL", answer("v2", "ok\x00", "kek-1"), nil, contract.StatusUnhealthy, "kek-1", `expected exactly "ok"`},
		{"healthz empty", answer("v2", "", "kek-1"), nil, contract.StatusUnhealthy, "kek-1", "no readable text (0 bytes)"},
		{"healthz of control characters", answer("v2", "\x00\x01\n", "kek-1"), nil, contract.StatusUnhealthy, "kek-1", "no readable text (3 bytes)"},
		{"healthz of 1 MiB", answer("v2", strings.Repeat("x", 1<<20), "kek-1"), nil, contract.StatusUnhealthy, "kek-1", contract.CutMark},
		{"key_id empty", answer("v2", "ok", ""), nil, contract.StatusUnhealthy, "", "key_id is empty"},
		{"key_id too long", answer("v2", "ok", long), nil, contract.StatusUnhealthy, "", "key_id is 1025 bytes"},
		{"wrong version", answer("v1beta1", "ok", "kek-1"), nil, contract.StatusUnhealthy, "kek-1", `version is "v1beta1"`},
		{"no version", answer("", "ok", "kek-1"), nil, contract.StatusUnhealthy, "kek-1", `version is ""`},
		{"hostile version", answer("v\n2\"}", "ok", "kek-1"), nil, contract.StatusUnhealthy, "kek-1", `version is "v 2\"}"`},
		{"deadline", nil, &Failure{"DeadlineExceeded", "context deadline exceeded"}, contract.StatusError, "", "DeadlineExceeded: context deadline exceeded"},
		{"hostile error text", nil, &Failure{"Internal", "a\nb\x1b[31m"}, contract.StatusError, "", "Internal: a b [31m"},
		{"error without text", nil, &Failure{"Internal", ""}, contract.StatusError, "", "Internal:"},
		{"empty response", answer("", "", ""), nil, contract.StatusError, "", "nil response"},
		{"nil response", nil, nil, contract.StatusError, "", "nil response"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := Result{KeyID: "2", Started: at, Answer: tt.answer, Failure: tt.failure}.Entry(time.Second)
			if e.KeyID != "2" || e.Status != tt.status || e.KEKID != tt.kekID {
				t.Errorf("got %s/%s kekID of %d bytes, expected %s with %d bytes", e.KeyID, e.Status, len(e.KEKID), tt.status, len(tt.kekID))
			}
			if !strings.Contains(e.Detail, tt.detail) || (e.Detail == "") != (tt.status == contract.StatusHealthy) {
				t.Errorf("detail %q, expected it to hold %q and to be empty only when healthy", e.Detail, tt.detail)
			}
			if contract.SafeDetail(e.Detail) != e.Detail {
				t.Errorf("detail %q is not safe", e.Detail)
			}
			if want := at.Truncate(time.Millisecond); !e.LastChecked.Equal(want) {
				t.Errorf("lastChecked %v, expected %v", e.LastChecked, want)
			}
		})
	}
}

func TestLastCheckedPrecisionFollowsTheInterval(t *testing.T) {
	at := time.Date(2026, 5, 8, 12, 34, 56, 789654321, time.UTC)
	if got := (Result{Started: at}).Entry(30 * time.Second).LastChecked; !got.Equal(at.Truncate(time.Second)) {
		t.Errorf("with 30s: %v, expected whole seconds", got)
	}
}

package core

import (
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

// Answer is what a plugin said in one StatusResponse.
type Answer struct {
	Version string
	Healthz string
	KeyID   string // the plugin's key_id, which is the kekID, not the keyID
}

// Failure is an RPC that brought no answer: the name of its gRPC code, and its text.
type Failure struct {
	Code string
	Text string
}

// Result is one probe of one plugin. At most one of Answer and Failure is set.
type Result struct {
	KeyID    string
	Started  time.Time // before the connection was dialled, so that no answer is older than it claims
	Duration time.Duration
	Answer   *Answer
	Failure  *Failure
}

// healthyText is the only healthz that means healthy (KMS v2: exactly this, no case folding, no spaces).
const healthyText = "ok"

// Entry is what r means (docs/contract.md, "Outcome of a probe"). Whatever the plugin sent, the entry is within the
// limits of both wire forms and an entry that is not healthy says why.
func (r Result) Entry(interval time.Duration) contract.Entry {
	e := contract.Entry{
		KeyID:       r.KeyID,
		Status:      contract.StatusError,
		LastChecked: contract.RoundTime(r.Started, interval),
	}
	switch {
	case r.Failure != nil:
		e.Detail = contract.SafeDetail(r.Failure.Code + ": " + r.Failure.Text)
	case r.Answer == nil, *r.Answer == Answer{}:
		// On the wire a nil response is a message without a byte, so one with every field empty is the same thing.
		e.Detail = "nil response: the plugin answered OK with an empty StatusResponse"
	default:
		e.KEKID = usableKEKID(r.Answer.KeyID)
		e.Status, e.Detail = judge(*r.Answer)
	}
	return e
}

// judge names the first thing that is wrong with an answer. healthz comes first: it is what the plugin itself says.
func judge(a Answer) (contract.Status, string) {
	switch {
	case a.Healthz != healthyText:
		return contract.StatusUnhealthy, healthzDetail(a.Healthz)
	case a.KeyID == "":
		return contract.StatusUnhealthy, "key_id is empty, expected 1 to 1024 bytes"
	case len(a.KeyID) > contract.MaxKEKIDBytes:
		return contract.StatusUnhealthy, fmt.Sprintf("key_id is %d bytes, expected at most %d", len(a.KeyID), contract.MaxKEKIDBytes)
	case a.Version != "v2" && a.Version != "v2beta1":
		return contract.StatusUnhealthy, fmt.Sprintf("version is %q, expected v2 or v2beta1", contract.SafeText(a.Version, 64))
	}
	return contract.StatusHealthy, ""
}

// healthzDetail is the healthz text, except where that text would tell an administrator nothing.
func healthzDetail(healthz string) string {
	text := contract.SafeDetail(healthz)
	switch text {
	case "":
		return fmt.Sprintf("healthz has no readable text (%d bytes), expected \"ok\"", len(healthz))
	case healthyText:
		return fmt.Sprintf("healthz is %q with %d bytes of blanks or control characters, expected exactly \"ok\"", text, len(healthz)-len(text))
	}
	return text
}

func usableKEKID(keyID string) string {
	if len(keyID) > contract.MaxKEKIDBytes {
		return ""
	}
	return keyID
}

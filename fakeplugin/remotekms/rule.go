package remotekms

import (
	"cmp"
	"fmt"
	"path"
	"time"
)

// MaxLatency bounds the latency of a rule; a longer one is a cut-off by another name.
const MaxLatency = 10 * time.Minute

// How a cut-off looks to the caller.
const (
	CutRefuse = "refuse" // the connection breaks at once
	CutHang   = "hang"   // no answer until the caller gives up
)

// Rule is how the KMS treats some callers. Every matching rule applies: any cut-off cuts, latencies add up, and the first LogIn is the refusal.
type Rule struct {
	// Caller is a pattern (path.Match) over NODE/KEYID: "cp-1/1", "cp-1/*" for a node, "*/*" for all.
	Caller  string   `json:"caller"`
	CutOff  string   `json:"cutOff,omitempty"` // "", CutRefuse or CutHang
	Latency Duration `json:"latency,omitzero"`
	Deny    bool     `json:"deny,omitempty"` // answer "access denied" to every Encrypt and Decrypt
	// LogIn refuses log-ins, in the words of that failure of the caller's provider (RefusedAsEver: the one that the provider names).
	LogIn string `json:"logIn,omitempty"`
	// By is ByAppRole or ByCertificate: LogIn is about log-ins with that; empty: about all.
	By string `json:"by,omitempty"`
	// Revoke ends the leases that there are when the rule is set.
	Revoke bool `json:"revoke,omitempty"`
	// LogInsPerMinute and CallsPerSecond throttle a caller: further log-ins, and further calls of Encrypt and Decrypt, are refused. 0: no limit.
	LogInsPerMinute int `json:"logInsPerMinute,omitempty"`
	CallsPerSecond  int `json:"callsPerSecond,omitempty"`
}

// LogIns is the rule by which the log-ins of a caller are refused, in the words of its provider, or accepted; revoke ends its leases, too.
func LogIns(caller string, refused, revoke bool) Rule {
	r := Rule{Caller: caller, Revoke: revoke}
	if refused {
		r.LogIn = RefusedAsEver
	}
	return r
}

// maxFailure bounds the name of a failure.
const maxFailure = 64

// Validate says what is wrong with r.
func (r Rule) Validate() error {
	if _, err := path.Match(r.Caller, "cp-1/1"); err != nil || r.Caller == "" {
		return fmt.Errorf("caller %.64q: expected a pattern such as cp-1/1 or cp-1/*", r.Caller)
	}
	if r.CutOff != "" && r.CutOff != CutRefuse && r.CutOff != CutHang {
		return fmt.Errorf("cutOff %.64q: expected refuse or hang", r.CutOff)
	}
	if r.Latency < 0 || time.Duration(r.Latency) > MaxLatency {
		return fmt.Errorf("latency %v: expected 0 to %v", time.Duration(r.Latency), MaxLatency)
	}
	if r.LogInsPerMinute < 0 || r.CallsPerSecond < 0 {
		return fmt.Errorf("%d log-ins per minute and %d calls per second: expected 0 or more", r.LogInsPerMinute, r.CallsPerSecond)
	}
	if r.By != "" && r.By != ByAppRole && r.By != ByCertificate {
		return fmt.Errorf("by %.64q: expected %s or %s", r.By, ByAppRole, ByCertificate)
	}
	if len(r.LogIn) > maxFailure {
		return fmt.Errorf("logIn has %d bytes: expected the name of a failure, at most %d", len(r.LogIn), maxFailure)
	}
	return nil
}

// treat unites the rules that match a caller.
func treat(rules []Rule, caller Caller) Rule {
	var all Rule
	for _, r := range rules {
		if ok, err := path.Match(r.Caller, caller.Plugin); err != nil || !ok {
			continue
		}
		all.CutOff = cmp.Or(all.CutOff, r.CutOff)
		if all.LogIn == "" && (r.By == "" || r.By == caller.by()) {
			all.LogIn = r.LogIn
		}
		all.LogInsPerMinute, all.CallsPerSecond = stricter(all.LogInsPerMinute, r.LogInsPerMinute), stricter(all.CallsPerSecond, r.CallsPerSecond)
		all.Latency += r.Latency
		all.Deny = all.Deny || r.Deny
	}
	return all
}

// stricter is the lower one of two limits.
func stricter(a, b int) int {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// Duration is a time.Duration that is written "250ms" in JSON.
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) error {
	parsed, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("duration %.32q: expected one such as 250ms or 10s", b)
	}
	*d = Duration(parsed)
	return nil
}

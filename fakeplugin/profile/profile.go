package profile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
)

type Profile struct {
	Name    string
	Summary string
	Plugin  string // the plugin that it is taken from, by address

	KeyID    KeyID
	Latency  map[string]Latency // by method
	Failures []Failure
	// Lease is how the plugin logs in; nil: it does not.
	Lease *Lease
}

// Lease is what a log-in gets, and in which words calls and log-ins are refused.
type Lease struct {
	// TTL is how long calls are allowed after a log-in or a renewal, Longest how long after the log-in at most. TTL <= Longest; where both are the same
	// nothing is renewed. Real leases last an hour or more: a scenario does not.
	TTL, Longest time.Duration
	// Lost is the failure of calls whose lease has expired or was revoked, Refused that of a log-in.
	Lost, Refused string
	// Certificate is how long the certificate lasts that the first log-in brings, and the next ones use; 0: there is none. RefusedCertificate is its Refused.
	Certificate        time.Duration
	RefusedCertificate string
}

// KeyID says what the plugin answers as key_id.
type KeyID struct {
	// Template has the placeholders of Placeholders.
	Template string
	// Base64 encodes what the template gives.
	Base64 bool
	// ChangesOnRotation says whether a new version of the remote key shows in the key_id. Where it does not, nobody can see a
	// rotation, and the administrator has to configure another key.
	ChangesOnRotation bool
	// Why is for people.
	Why string
}

// Failure is a typical failure: how each method fares while it lasts. A method that it does not name is as ever.
type Failure struct {
	Name    string
	Summary string
	Source  string // where the texts are from
	Methods map[string]Answer
}

type Answer struct {
	Healthz string     // of a Status that is answered; empty: ok
	Code    codes.Code // of a call that fails; OK: it is answered
	Text    string     // of a call that fails
	After   time.Duration
}

// String is the answer in words. Texts are quoted: they may have several lines.
func (a Answer) String() string {
	said := fmt.Sprintf("%v %q", a.Code, a.Text)
	switch {
	case a.Healthz != "":
		said = fmt.Sprintf("healthz %q", a.Healthz)
	case a.Code == codes.OK:
		said = "as ever"
	}
	if a.After > 0 {
		said += fmt.Sprintf(", after %v", a.After)
	}
	return said
}

// Failure finds a failure by its name.
func (p *Profile) Failure(name string) (Failure, error) {
	var known []string
	for _, f := range p.Failures {
		if f.Name == name {
			return f, nil
		}
		known = append(known, f.Name)
	}
	return Failure{}, fmt.Errorf("the profile %s has no failure %.64q (it has: %s)", p.Name, name, strings.Join(known, ", "))
}

// Strikes are the methods that it names, in the order of the API.
func (f Failure) Strikes() []string {
	return slices.DeleteFunc(Methods(), func(m string) bool { _, ok := f.Methods[m]; return !ok })
}

// Methods are those of the KMS v2 API.
func Methods() []string { return []string{"Status", "Encrypt", "Decrypt"} }

// Latency is how long a method takes, by quantiles: what is between two of them is drawn evenly.
type Latency struct {
	Least, Half, Most99, Most time.Duration // of no call, half of them, 99 of 100, all
}

// Of is the latency at a quantile, from 0 to 1. The zero Latency is none at all.
func (l Latency) Of(q float64) time.Duration {
	switch {
	case q < 0.5:
		return between(l.Least, l.Half, q/0.5)
	case q < 0.99:
		return between(l.Half, l.Most99, (q-0.5)/0.49)
	default:
		return between(l.Most99, l.Most, (q-0.99)/0.01)
	}
}

func between(a, b time.Duration, share float64) time.Duration {
	return a + time.Duration(min(1, share)*float64(b-a))
}

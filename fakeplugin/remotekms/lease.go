package remotekms

import (
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
)

// Codes of refusals that are about a caller's credential.
const (
	// CodeLease: the lease of the call has expired, was revoked or is not known.
	CodeLease = "lease"
	// CodeLogIn begins the code of a log-in that is refused. The rest is the failure of a provider in whose words it is, or RefusedAsEver.
	CodeLogIn = "log-in/"
	// RefusedAsEver stands for the failure that the caller's provider names.
	RefusedAsEver = "refused"
)

type Terms struct {
	// TTL is how long after a log-in or a renewal calls are allowed, Longest how long after the log-in at most. TTL <= Longest.
	TTL     Duration `json:"ttl"`
	Longest Duration `json:"longest"`
	// Certificate is how long the certificate lasts that a log-in asks for; 0: it asks for none.
	Certificate Duration `json:"certificate,omitzero"`
}

// Lease is what a log-in gets. The zero value is none.
type Lease struct {
	ID string `json:"id"`
	// From is the log-in or the last renewal. Calls are allowed before Expires, which no renewal moves beyond Until.
	From    time.Time `json:"from"`
	Expires time.Time `json:"expires"`
	Until   time.Time `json:"until"`
	// Certificate is for the next log-ins; zero: the log-in did not ask for one.
	Certificate Certificate `json:"certificate,omitzero"`
}

// Grant is the lease of a log-in at now. refused is why no log-in is accepted, by the name of a provider's failure; empty: it is.
func Grant(id string, t Terms, refused string, now time.Time) (Lease, error) {
	if refused != "" {
		return Lease{}, &keyring.Refusal{Code: CodeLogIn + refused, Message: "the log-in is refused: " + refused}
	}
	lease := Lease{ID: id, From: now, Expires: now.Add(time.Duration(t.TTL)), Until: now.Add(time.Duration(t.Longest))}
	if t.Certificate != 0 {
		lease.Certificate = Certificate{From: now, Expires: now.Add(time.Duration(t.Certificate))}
	}
	return lease, nil
}

// Usable is why a call under the lease with an id is refused at now; nil: it is allowed.
func (l Lease) Usable(id string, now time.Time) error {
	switch {
	case l.ID == "" || id != l.ID:
		return keyring.Refuse(CodeLease, "the lease %.64q is not known: it was revoked, or another log-in took its place", id)
	case !now.Before(l.Expires):
		return keyring.Refuse(CodeLease, "the lease %.64q has expired", id)
	}
	return nil
}

// Renewed is the lease with an id after a renewal at now. A lease that is not usable is not renewed.
func (l Lease) Renewed(id string, t Terms, now time.Time) (Lease, error) {
	if err := l.Usable(id, now); err != nil {
		return Lease{}, err
	}
	l.From, l.Expires = now, now.Add(time.Duration(t.TTL))
	if l.Expires.After(l.Until) {
		l.Expires = l.Until
	}
	return l, nil
}

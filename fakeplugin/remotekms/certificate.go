package remotekms

import "time"

// What a caller logs in with. Vault's AppRole is a bootstrap: the first log-in brings a certificate, which takes its place, and is revoked when that is done.
const (
	ByAppRole     = "appRole"
	ByCertificate = "certificate"
)

// RefusedCertificate stands for the failure that the caller's provider names for a certificate, as RefusedAsEver does for another credential.
const RefusedCertificate = "refused-certificate"

// Certificate is what a caller logs in with in place of its first credential. The zero value is none. The KMS keeps no certificates: as with a signed one, it
// believes the times.
type Certificate struct {
	From    time.Time `json:"from"`
	Expires time.Time `json:"expires"`
}

// Usable reports whether a log-in with the certificate is accepted at now.
func (c Certificate) Usable(now time.Time) bool { return now.Before(c.Expires) }

// Due reports whether half of the time of a certificate is over: another one takes its place before it expires.
func (c Certificate) Due(now time.Time) bool {
	return c != Certificate{} && !now.Before(c.From.Add(c.Expires.Sub(c.From)/2))
}

// by is what the caller logs in with.
func (c Caller) by() string {
	if c.Certificate == (Certificate{}) {
		return ByAppRole
	}
	return ByCertificate
}

package plugin

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/profile"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
)

// Act is what a plugin does about its lease before a call.
type Act string

// Acts. The zero value is none: the call is made under the lease that there is.
const (
	ActLogIn Act = "log-in"
	ActRenew Act = "renew"
)

// Session is what a plugin knows of its lease; without an id it has none.
type Session struct {
	remotekms.Lease
	// Certificate is what it logs in with once there is one: the credential that brought it is good for nothing else.
	Certificate remotekms.Certificate
	// Refused counts the log-ins that were refused since the last one that was not.
	Refused int
}

// Decide is what to do at now: a lease is renewed when half of its time is over, and where no renewal moves its end any more, a new log-in takes its
// place then. So does one that brings another certificate, when half of the time of the one is over.
func Decide(s Session, now time.Time) Act {
	switch {
	case s.ID == "", !now.Before(s.Expires), s.Certificate.Due(now):
		return ActLogIn
	case now.Before(s.half()):
		return ""
	case s.Expires.Before(s.Until):
		return ActRenew
	}
	return ActLogIn
}

// half is when half of the time of a lease is over.
func (s Session) half() time.Time { return s.From.Add(s.Expires.Sub(s.From) / 2) }

type session struct {
	mu  sync.Mutex // one log-in at a time
	now Session
}

// leased makes a call under a lease, where the plugin's provider has leases. A call that is refused because its lease is lost is made again after a
// log-in.
func (p *Plugin) leased(ctx context.Context, uid string, call func(remotekms.Caller) error) error {
	caller := remotekms.Caller{Plugin: p.o.Name, UID: uid}
	of := p.of.Load()
	if of == nil || of.Lease == nil {
		return call(caller)
	}
	terms := remotekms.Terms{TTL: remotekms.Duration(of.Lease.TTL), Longest: remotekms.Duration(of.Lease.Longest), Certificate: remotekms.Duration(of.Lease.Certificate)}
	for again := true; ; again = false {
		lease, err := p.lease(ctx, terms)
		if err != nil {
			return err
		}
		caller.Lease = lease
		err = call(caller)
		if remotekms.Code(err) != remotekms.CodeLease {
			return err
		}
		p.lost(lease)
		if !again {
			return err
		}
	}
}

// lease is the id of the lease to make a call under. A log-in that is refused leaves the lease that there is in use until its end.
func (p *Plugin) lease(ctx context.Context, terms remotekms.Terms) (string, error) {
	s := &p.session
	s.mu.Lock()
	defer s.mu.Unlock()
	now := p.o.Clock.Now()
	act := p.o.Decide(s.now, now)
	caller := remotekms.Caller{Plugin: p.o.Name}
	if act == ActRenew {
		caller.Lease = s.now.ID
		lease, err := p.o.Service.Lease(ctx, caller, terms)
		if err == nil {
			s.now.Lease = lease
		} else if remotekms.Code(err) == remotekms.CodeLease {
			s.now.Lease = remotekms.Lease{}
			act, caller.Lease = p.o.Decide(s.now, now), ""
		}
	}
	if act == ActLogIn {
		if s.now.Certificate.Usable(now) {
			caller.Certificate = s.now.Certificate
			if !s.now.Certificate.Due(now) {
				terms.Certificate = 0
			}
		}
		lease, err := p.o.Service.Lease(ctx, caller, terms)
		switch {
		case err == nil:
			s.now = Session{Lease: lease, Certificate: cmp.Or(lease.Certificate, s.now.Certificate)}
		case s.now.ID == "" || !now.Before(s.now.Expires):
			s.now = Session{Certificate: s.now.Certificate, Refused: s.now.Refused + 1}
			return "", err
		}
	}
	if s.now.ID == "" {
		return noLease, nil
	}
	return s.now.ID, nil
}

// noLease is the lease of a plugin that has none and asks for none. The remote KMS knows no such lease.
const noLease = "none"

// lost forgets a lease.
func (p *Plugin) lost(id string) {
	p.session.mu.Lock()
	defer p.session.mu.Unlock()
	if p.session.now.ID == id {
		p.session.now.Lease = remotekms.Lease{}
	}
}

// inWords is the answer of the plugin's provider to a method after a refusal that is about the lease, if there is one.
func (p *Plugin) inWords(code, method string) (profile.Answer, bool) {
	of := p.of.Load()
	if of == nil || of.Lease == nil {
		return profile.Answer{}, false
	}
	name, refused := strings.CutPrefix(code, remotekms.CodeLogIn)
	switch {
	case code == remotekms.CodeLease:
		name = of.Lease.Lost
	case !refused:
		return profile.Answer{}, false
	case name == remotekms.RefusedAsEver:
		name = of.Lease.Refused
	case name == remotekms.RefusedCertificate:
		name = of.Lease.RefusedCertificate
	}
	f, err := of.Failure(name)
	if err != nil {
		return profile.Answer{}, false
	}
	a, there := f.Methods[method]
	return a, there
}

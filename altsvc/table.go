package altsvc

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// protocol is the only protocol whose alternatives are used.
const protocol = "h2"

// table has what is known about the alternatives of one origin, and chooses among them. It has no clock and no network.
type table struct {
	origin string        // host:port
	maxAge time.Duration // how long an entry may be used for new connections
	block  time.Duration // how long a network error blocks an alternative

	static  []string
	learned []entry
	field   string // the field that learned is from
	current string // the alternative in use, or ""
	blocked map[string]blockade
}

// entry is an alternative from a response.
type entry struct {
	address  string
	lifetime time.Duration
	expires  time.Time
	persist  bool
}

// blockade ends at until, or never.
type blockade struct {
	until   time.Time
	forever bool
}

// situation is what a choice depends on, apart from the table.
type situation struct {
	now time.Time
	// tried has the alternatives that this request has used already.
	tried []string
	// connected reports whether there is a connection to an alternative.
	connected func(address string) bool
	// local returns the addresses of this machine.
	local func() []netip.Addr
}

// next returns the alternative for the next attempt of a request, or "" for the origin. The order is: the alternative in use,
// alternatives on this machine, the origin's own address if it is an alternative, all others in the server's order, and those
// of the static list that the server did not list.
func (t *table) next(s situation) string {
	if len(t.learned) == 0 && len(t.static) == 0 {
		return ""
	}
	if t.current != "" && !slices.Contains(s.tried, t.current) && t.usable(t.current, s) {
		return t.current
	}
	var open []string
	for _, address := range t.addresses() {
		if !slices.Contains(s.tried, address) && t.usable(address, s) {
			open = append(open, address)
		}
	}
	if len(open) == 0 {
		return ""
	}
	local := s.local()
	for _, address := range open {
		if isLocal(address, local) {
			return address
		}
	}
	if slices.Contains(open, t.origin) {
		return t.origin
	}
	return open[0]
}

// usable reports whether an alternative is not blocked, and is in the static list, fresh, or the one in use with a connection:
// the end of its lifetime prevents new connections, not the use of existing ones (RFC 7838, section 2.2).
func (t *table) usable(address string, s situation) bool {
	if b, ok := t.blocked[address]; ok {
		if b.forever || s.now.Before(b.until) {
			return false
		}
		delete(t.blocked, address)
	}
	if slices.Contains(t.static, address) {
		return true
	}
	for _, e := range t.learned {
		if e.address == address {
			return s.now.Before(e.expires) || address == t.current && s.connected(address)
		}
	}
	return false
}

// addresses returns all alternatives, learned ones first.
func (t *table) addresses() []string {
	all := make([]string, 0, len(t.learned)+len(t.static))
	for _, e := range t.learned {
		all = append(all, e.address)
	}
	for _, address := range t.static {
		if !slices.Contains(all, address) {
			all = append(all, address)
		}
	}
	return all
}

// learn replaces the learned alternatives by those of a response, which was age old at now. text is the field before parsing.
// It reports whether the set of alternatives may have changed.
func (t *table) learn(now time.Time, text string, age time.Duration) (changed bool, err error) {
	if text == t.field {
		t.refresh(now, age)
		return false, nil
	}
	field, err := Parse(text)
	if err != nil {
		return false, err
	}
	t.field, t.learned = text, nil
	host, _, _ := net.SplitHostPort(t.origin)
	for _, a := range field.Alternatives {
		if a.Protocol != protocol {
			continue
		}
		address := net.JoinHostPort(cmp.Or(a.Host, host), strconv.Itoa(int(a.Port)))
		if slices.ContainsFunc(t.learned, func(e entry) bool { return e.address == address }) {
			continue
		}
		t.learned = append(t.learned, entry{address: address, lifetime: a.MaxAge, persist: a.Persist})
	}
	t.refresh(now, age)
	t.settle()
	return true, nil
}

func (t *table) refresh(now time.Time, age time.Duration) {
	for i := range t.learned {
		e := &t.learned[i]
		e.expires = now.Add(min(e.lifetime-age, t.maxAge))
	}
}

// settle forgets the alternative in use if it is an alternative no more.
func (t *table) settle() {
	if !slices.Contains(t.addresses(), t.current) {
		t.current = ""
	}
}

// used records that an alternative answered. The alternative in use stays in use as long as it is usable.
func (t *table) used(address string, s situation) {
	if t.current == address || t.current != "" && t.usable(t.current, s) {
		return
	}
	if slices.Contains(t.addresses(), address) {
		t.current = address
	}
}

// failed blocks an alternative, for a time or for ever. It reports whether the alternative was not blocked as long before.
func (t *table) failed(now time.Time, address string, forever bool) bool {
	if t.blocked == nil {
		t.blocked = map[string]blockade{}
	}
	for other, b := range t.blocked { // remove what has ended, so that the map does not grow with each new address
		if !b.forever && !now.Before(b.until) {
			delete(t.blocked, other)
		}
	}
	before, blocked := t.blocked[address]
	if before.forever {
		return false
	}
	t.blocked[address] = blockade{until: now.Add(t.block), forever: forever}
	return !blocked || forever
}

// misdirected removes an alternative that is not authoritative for the origin (RFC 7838, section 6). It is also blocked for a
// time, because the next response probably lists it again.
func (t *table) misdirected(now time.Time, address string) {
	t.learned = slices.DeleteFunc(t.learned, func(e entry) bool { return e.address == address })
	t.field = ""
	t.failed(now, address, false)
	t.settle()
}

// networkChanged removes what is valid in one network only: alternatives without "persist", and the blockades by network errors.
func (t *table) networkChanged() {
	t.learned = slices.DeleteFunc(t.learned, func(e entry) bool { return !e.persist })
	t.field = ""
	for address, b := range t.blocked {
		if !b.forever {
			delete(t.blocked, address)
		}
	}
	t.settle()
}

func isLocal(address string, local []netip.Addr) bool {
	ip, err := netip.ParseAddrPort(address)
	return err == nil && slices.Contains(local, ip.Addr().Unmap())
}

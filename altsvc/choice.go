package altsvc

import (
	"net/netip"

	"k8s.io/klog/v2"
)

// Table is what is known about the alternatives of one origin, and the choice among them, without a network. Services has one for its
// requests. A client with connections of its own has one too, and so behaves as Services does. It is not safe for concurrent
// use.
type Table struct {
	table
	options Options
}

// NewTable returns the Table of an origin (host:port). Of the options it uses Static, MaxAge, Block, LocalAddresses and Clock.
func NewTable(origin string, o Options) (*Table, error) {
	static, err := parseStatic(o.Static, origin)
	if err != nil {
		return nil, err
	}
	o = o.complete()
	return &Table{table{origin: origin, maxAge: o.MaxAge, block: o.Block, static: static}, o}, nil
}

// Next returns the host:port of the alternative for the next attempt of a request that has tried some already, or "" for the origin. connected
// reports whether there is a connection to an alternative.
func (t *Table) Next(tried []string, connected func(address string) bool) string {
	return t.next(t.situation(tried, connected))
}

// Used records that an alternative answered.
func (t *Table) Used(address string, connected func(address string) bool) {
	t.used(address, t.situation(nil, connected))
}

// Failed records that an alternative failed, by an error of the network or of its certificate. It reports whether that is news.
func (t *Table) Failed(address string, certificate bool) bool {
	return t.failed(t.options.Clock.Now(), address, certificate)
}

// Learn reads the Alt-Svc field of a response. An error is of the field, which then changes nothing.
func (t *Table) Learn(field string) error {
	_, err := t.learn(t.options.Clock.Now(), field, 0)
	return err
}

func (t *Table) situation(tried []string, connected func(string) bool) situation {
	return situation{now: t.options.Clock.Now(), tried: tried, connected: connected, local: t.local}
}

func (t *Table) local() []netip.Addr {
	local, err := t.options.LocalAddresses()
	if err != nil {
		klog.Background().Error(err, "Alternatives on this machine are not preferred")
	}
	return local
}

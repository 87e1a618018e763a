package netfault

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

type Lookups string

const (
	Answered Lookups = ""         // the name has its address, and no other name exists
	Lost     Lookups = "lost"     // nothing is answered
	ServFail Lookups = "servfail" // each is answered with SERVFAIL
	NXDomain Lookups = "nxdomain" // each is answered with NXDOMAIN
)

// Resolver is a DNS server that knows the IPv4 address of one name. It answers over UDP.
type Resolver struct {
	conn   net.PacketConn
	name   string // absolute
	served sync.WaitGroup

	mu      sync.Mutex
	lookups Lookups
	address netip.Addr
}

// NewResolver opens a resolver for a name at an address (host:port). Clients that read resolv.conf expect it at port 53. The owner must
// Close it.
func NewResolver(at, name string, address netip.Addr) (*Resolver, error) {
	if _, err := dnsmessage.NewName(name + "."); err != nil || !address.Is4() {
		return nil, fmt.Errorf("open resolver for %q at %v: expected a name without a dot at its end and an IPv4 address", name, address)
	}
	conn, err := net.ListenPacket("udp4", at)
	if err != nil {
		return nil, fmt.Errorf("open resolver for %s: %w", name, err)
	}
	r := &Resolver{conn: conn, name: name + ".", address: address}
	r.served.Go(r.serve)
	return r, nil
}

// Addr is where clients send their queries (host:port).
func (r *Resolver) Addr() string { return r.conn.LocalAddr().String() }

// Set decides what becomes of queries from now on, and which address the name has.
func (r *Resolver) Set(l Lookups, address netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lookups, r.address = l, address
}

// Address is what the name is answered with.
func (r *Resolver) Address() netip.Addr {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.address
}

// Close ends it, and returns when its goroutine has ended. It is safe to call twice.
func (r *Resolver) Close() error {
	err := r.conn.Close()
	r.served.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// maxQuery is the most that a client sends over UDP.
const maxQuery = 4096

func (r *Resolver) serve() {
	buffer := make([]byte, maxQuery)
	for {
		n, client, err := r.conn.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // an answer that a client did not wait for
		}
		if answer := r.answer(buffer[:n]); answer != nil {
			_, _ = r.conn.WriteTo(answer, client) // who has gone misses it
		}
	}
}

// answer is that to a query; nil: none.
func (r *Resolver) answer(query []byte) []byte {
	var p dnsmessage.Parser
	header, err := p.Start(query)
	if err != nil || header.Response {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	r.mu.Lock()
	lookups, address := r.lookups, r.address
	r.mu.Unlock()
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: header.ID, Response: true, RecursionDesired: header.RecursionDesired, RecursionAvailable: true},
		Questions: []dnsmessage.Question{q}}
	switch known := strings.EqualFold(q.Name.String(), r.name); {
	case lookups == Lost:
		return nil
	case lookups == ServFail:
		m.RCode = dnsmessage.RCodeServerFailure
	case lookups == NXDomain || !known:
		m.Authoritative, m.RCode = true, dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}, Body: &dnsmessage.AResource{A: address.As4()}}}
	}
	answer, err := m.Pack()
	if err != nil {
		return nil // a name that was parsed can be packed
	}
	return answer
}

package netfault

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const lbName = "kubernetes.default.svc"

// lookup asks a resolver as a program does that was built without cgo.
func lookup(t *testing.T, r *Resolver, name string) ([]netip.Addr, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	client := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, r.Addr())
	}}
	return client.LookupNetIP(ctx, "ip", name)
}

func TestResolver(t *testing.T) {
	address, next := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.7.7.7")
	r, err := NewResolver("127.0.0.1:0", lbName, address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(r.Close(), r.Close()); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	expect := func(want netip.Addr) {
		t.Helper()
		if got, err := lookup(t, r, lbName); err != nil || len(got) != 1 || got[0].Unmap() != want {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	}
	expect(address)
	var dns *net.DNSError
	if _, err := lookup(t, r, "kubernetes.invalid"); !errors.As(err, &dns) || !dns.IsNotFound {
		t.Errorf("another name: %v", err)
	}
	r.Set(NXDomain, address)
	if _, err := lookup(t, r, lbName); !errors.As(err, &dns) || !dns.IsNotFound {
		t.Errorf("NXDOMAIN: %v", err)
	}
	r.Set(ServFail, address)
	if _, err := lookup(t, r, lbName); !errors.As(err, &dns) || dns.IsNotFound || dns.IsTimeout || !dns.IsTemporary {
		t.Errorf("SERVFAIL: %v", err)
	}
	r.Set(Lost, address)
	query := dnsmessage.Message{Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(lbName + "."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}
	text, err := query.Pack()
	if err != nil {
		t.Fatal(err)
	}
	if answer := r.answer(text); answer != nil {
		t.Errorf("a lost query was answered: %q", answer)
	}
	r.Set(Answered, next)
	expect(next)
	if r.Address() != next {
		t.Errorf("address: %v", r.Address())
	}
}

func TestResolverIgnoresWhatIsNoQuery(t *testing.T) {
	r, err := NewResolver("127.0.0.1:0", lbName, netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, query := range [][]byte{nil, []byte("x"), make([]byte, 12)} {
		if answer := r.answer(query); answer != nil {
			t.Errorf("%q was answered", query)
		}
	}
}

func TestResolverRefusesWhatItCannotAnswer(t *testing.T) {
	if _, err := NewResolver("127.0.0.1:0", lbName, netip.MustParseAddr("::1")); err == nil {
		t.Error("an IPv6 address was accepted")
	}
	if _, err := NewResolver("nowhere", lbName, netip.MustParseAddr("127.0.0.1")); err == nil {
		t.Error("opened at an address that is none")
	}
}

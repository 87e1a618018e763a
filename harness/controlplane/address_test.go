package controlplane

import (
	"net"
	"strings"
	"testing"
)

func TestAddressesAreApart(t *testing.T) {
	seen := map[string]bool{}
	for range 20 {
		a, err := claimAddress()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := a.close(); err != nil {
				t.Error(err)
			}
		})
		if seen[a.ip] || strings.HasPrefix(a.ip, "127.0.") {
			t.Errorf("address %s was given out already, or is everybody's", a.ip)
		}
		seen[a.ip] = true
		port, err := a.port()
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", port)
		if err != nil {
			t.Fatalf("the port is not free: %v", err)
		}
		_ = l.Close()
	}
}

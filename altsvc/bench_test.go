package altsvc

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// BenchmarkRequest measures what a wrapped client costs over a plain client of client-go that asks the same server. It reports
//
//	ratio    time of a request of the plain client / of the wrapped one; 1 is ideal
//	plain-us, wrapped-us  time of a request
//
// The cases: no field, the field on every response with the origin in use, and an alternative in use. The clients take turns, so
// that other load of the machine affects both.
func BenchmarkRequest(b *testing.B) {
	for _, test := range []struct {
		name  string
		field bool
		to    string
	}{{"no-field", false, "lb"}, {"origin-blocked-alternatives", true, "lb"}, {"alternative", true, "a"}} {
		b.Run(test.name, func(b *testing.B) {
			c := newCluster(b, "a", "b", "c")
			if !test.field {
				c.advertise()
			}
			client := c.client(Options{})
			if test.to == "lb" && test.field {
				for _, s := range c.servers {
					s.stop()
				}
				client.get("lb")
			}
			client.get("lb")
			client.get(test.to)
			url, serverName := c.origin.URL, ""
			if test.to == "a" { // the plain client asks the same server directly
				url, serverName = "https://"+c.servers["a"].address, DefaultAuthority
			}
			plain := c.plain(b, serverName)
			compare(b, "plain", "wrapped", func() { fetch(b, plain, url) }, func() { fetch(b, client.Client, client.url) })
		})
	}
}

// BenchmarkLocalPath measures the gain of the path to the own node (S4-10): a plain client asks through a load balancer, which
// forwards bytes and adds a delay in each direction as a network does; a wrapped client asks the API server directly. It reports the
// ratio of both times.
func BenchmarkLocalPath(b *testing.B) {
	for _, delay := range []time.Duration{0, 200 * time.Microsecond, time.Millisecond} {
		b.Run("one-way="+delay.String(), func(b *testing.B) {
			c := newCluster(b)
			a := c.start("a", "127.0.0.2:0", clusterCA().issue(b, DefaultAuthority, "127.0.0.1"), "h2")
			c.servers["a"] = a
			c.advertise("a")
			balancer := startRelay(b, a.address, delay)
			config := c.config()
			config.Host = "https://" + balancer
			wrapped := c.clientOf(config, Options{LocalAddresses: func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("127.0.0.2")}, nil }})
			wrapped.url = config.Host
			wrapped.get("a")
			wrapped.get("a")
			if wrapped.services.Current() != a.address {
				b.Fatal("the client does not use the direct path")
			}
			plain := c.plain(b, "")
			compare(b, "balancer", "direct", func() { fetch(b, plain, config.Host) }, func() { fetch(b, wrapped.Client, config.Host) })
		})
	}
}

// plain is a client of client-go that is not wrapped.
func (c *cluster) plain(b *testing.B, serverName string) *http.Client {
	config := c.config()
	config.ServerName = serverName
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { utilnet.CloseIdleConnectionsFor(client.Transport) })
	return client
}

// compare runs two functions in turn, in short slices. It reports the medians of their times and of the ratio of both, which a pause of
// the machine does not change.
func compare(b *testing.B, baseline, subject string, first, second func()) {
	const slice = 20
	first()
	second()
	var times [2][]float64
	var ratios []float64
	for round := 0; b.Loop(); round++ {
		var took [2]float64
		for turn := range 2 {
			i := (round + turn) % 2
			f := []func(){first, second}[i]
			start := time.Now()
			for range slice {
				f()
			}
			took[i] = float64(time.Since(start).Nanoseconds()) / slice / 1000
			times[i] = append(times[i], took[i])
		}
		ratios = append(ratios, took[0]/took[1])
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(times[0]), baseline+"-us")
	b.ReportMetric(median(times[1]), subject+"-us")
	b.ReportMetric(median(ratios), "ratio")
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

func fetch(b *testing.B, client *http.Client, url string) {
	res, err := client.Get(url + "/api")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		b.Fatal(err)
	}
	_ = res.Body.Close()
}

// startRelay starts a load balancer that forwards connections to one address, and returns its own address. It delays what it forwards.
func startRelay(b *testing.B, to string, delay time.Duration) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	group.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			mu.Lock()
			open = append(open, client, server)
			mu.Unlock()
			group.Go(func() { forward(server, client, delay) })
			group.Go(func() { forward(client, server, delay) })
		}
	})
	b.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for _, conn := range open {
			_ = conn.Close()
		}
		mu.Unlock()
		group.Wait()
	})
	return listener.Addr().String()
}

func forward(to, from net.Conn, delay time.Duration) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && delay > 0 {
			<-time.After(delay)
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			_ = to.Close()
			return
		}
	}
}

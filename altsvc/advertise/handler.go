// Package advertise is the server's part of alternative services: it adds the Alt-Svc field with the addresses of all ready API
// servers to responses. An API server, or a proxy in front of it that terminates TLS, wraps its handler.
//
// It decides which clients get the field, and reads which API servers are ready. It changes neither requests nor the rest of
// responses, and no mistake of it fails a request. The client's part is package altsvc.
package advertise

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/kmsharness/kmsharness/altsvc"
)

// FeatureGate is the name of the feature gate. It is off by default.
const FeatureGate = "APIServerAlternativeServices"

// Options of Handler.
type Options struct {
	// Enabled is the feature gate.
	Enabled bool
	// Ready returns the addresses of all ready API servers: see Endpoints.
	Ready func() []netip.AddrPort
	// Subnets are those of clients that can reach the addresses of API servers. Other clients do not get the field.
	Subnets []netip.Prefix
	// Allowed reports whether the client of a request may get the field: see Access.
	Allowed func(*http.Request) (bool, error)
	// MaxAge is the lifetime of the field, by default the time that an API server serves after it has become unready.
	MaxAge time.Duration
}

// Handler returns a handler that adds the field to the responses of next. It adds it to responses over HTTP/2 and TLS only, because
// clients ignore others. With the feature gate off it returns next.
func Handler(next http.Handler, o Options) (http.Handler, error) {
	if !o.Enabled {
		return next, nil
	}
	switch {
	case o.Ready == nil:
		return nil, errors.New("advertise alternatives: Ready is missing: it returns the addresses of ready API servers")
	case len(o.Subnets) == 0:
		return nil, errors.New("advertise alternatives: no subnets: name those from which the API servers can be reached; 0.0.0.0/0 and ::/0 are all")
	case o.Allowed == nil:
		return nil, errors.New("advertise alternatives: Allowed is missing: it decides which users get the addresses of API servers")
	}
	o.MaxAge = cmp.Or(o.MaxAge, altsvc.DefaultMaxAge)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if field := o.field(r); field != "" {
			w.Header().Set("Alt-Svc", field)
		}
		next.ServeHTTP(w, r)
	}), nil
}

// field returns the field for a request, or "".
func (o Options) field(r *http.Request) string {
	if r.TLS == nil || r.ProtoMajor != 2 {
		return ""
	}
	client, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	from := client.Addr().Unmap().WithZone("")
	if !slices.ContainsFunc(o.Subnets, func(p netip.Prefix) bool { return p.Contains(from) }) {
		return ""
	}
	ready := o.Ready()
	if len(ready) == 0 { // probably not known yet
		return ""
	}
	allowed, err := o.Allowed(r)
	if err != nil {
		klog.FromContext(r.Context()).Error(err, "No alternatives are advertised to a client, because its rights are not known", "client", from)
	}
	if !allowed {
		return ""
	}
	return format(inOrder(ready, from), o.MaxAge)
}

// inOrder returns the addresses in an order that depends on the client. Clients use the first address, so one order for all would
// send all clients to one API server. When an address is added or removed, the order of the others remains.
func inOrder(ready []netip.AddrPort, client netip.Addr) []netip.AddrPort {
	weight := func(a netip.AddrPort) uint64 {
		h := fnv.New64a()
		_, _ = h.Write(client.AsSlice())
		_, _ = h.Write(a.Addr().AsSlice())
		_, _ = h.Write([]byte{byte(a.Port() >> 8), byte(a.Port())})
		return mix(h.Sum64())
	}
	ordered := slices.Clone(ready)
	slices.SortFunc(ordered, func(a, b netip.AddrPort) int { return cmp.Compare(weight(a), weight(b)) })
	return ordered
}

// mix spreads the last bytes of a hash over all its bits: addresses often differ in these only.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	return h ^ h>>33
}

func format(addresses []netip.AddrPort, maxAge time.Duration) string {
	var field altsvc.Field
	for _, a := range addresses {
		field.Alternatives = append(field.Alternatives, altsvc.Alternative{Protocol: "h2", Host: a.Addr().String(), Port: a.Port(), MaxAge: maxAge})
	}
	return field.String()
}

// Enabled reads whether a list of feature gates, as in the flag --feature-gates of Kubernetes, enables FeatureGate.
func Enabled(gates string) (bool, error) {
	enabled := false
	for gate := range strings.SplitSeq(gates, ",") {
		if strings.TrimSpace(gate) == "" {
			continue
		}
		name, value, found := strings.Cut(strings.TrimSpace(gate), "=")
		on, err := strconv.ParseBool(value)
		if name != FeatureGate || !found || err != nil {
			return false, fmt.Errorf("read feature gates %q: expected %s=true or %s=false", gates, FeatureGate, FeatureGate)
		}
		enabled = on
	}
	return enabled, nil
}

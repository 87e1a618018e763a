package controlplane_test

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/harness/controlplane"
)

// etcd serves those who have a certificate of its own authority. An administrator of the API servers has none, and nor has another user of the machine.
func TestEtcdRefusesClientsWithoutItsCertificate(t *testing.T) {
	w := newWorld(t, nil, controlplane.ServerSpec{Name: "cp-1"})
	etcd := w.Etcd()
	must(t, etcd.Start(t.Context()))
	config, err := w.AdminConfig("https://127.0.0.1:1")
	must(t, err)
	admin, err := rest.TLSConfigFor(config)
	must(t, err)
	admin.RootCAs = etcd.TLS().RootCAs
	for name, c := range map[string]struct {
		url  string
		tls  *tls.Config
		want bool
	}{
		"etcd's certificate":    {etcd.URL(), etcd.TLS(), true},
		"no certificate":        {etcd.URL(), &tls.Config{RootCAs: etcd.TLS().RootCAs, MinVersion: tls.VersionTLS12}, false},
		"one of the API server": {etcd.URL(), admin, false},
		"no TLS":                {"http://" + etcd.Addr(), nil, false},
	} {
		transport := &http.Transport{TLSClientConfig: c.tls, DisableKeepAlives: true}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url+"/v3/kv/range", strings.NewReader(`{"key":"AA=="}`))
		must(t, err)
		response, err := transport.RoundTrip(request)
		if err == nil {
			response.Body.Close()
		}
		if got := err == nil && response.StatusCode == http.StatusOK; got != c.want {
			t.Errorf("%s: served %t (%v), want %t", name, got, err, c.want)
		}
	}
}

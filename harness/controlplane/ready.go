package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

type Readiness string

const (
	// Ready: everything works (/readyz), the KMS plugins included.
	Ready Readiness = "/readyz"
	// Live: the process serves (/livez).
	Live Readiness = "/livez"
	// Started: the process runs; nothing is waited for.
	Started Readiness = ""
)

// readyPoll is small against a boot of seconds; a probe costs well below a millisecond.
const readyPoll = 20 * time.Millisecond

// probeTimeout ends a probe of a paused API server. It is longer than the 3 s that /readyz takes when a KMS plugin does not
// answer, so that its answer can be told.
const probeTimeout = 5 * time.Second

// prober asks health endpoints over one connection.
type prober struct{ client *http.Client }

func newProber(roots *x509.CertPool, identity *tls.Certificate) *prober {
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if identity != nil {
		config.Certificates = []tls.Certificate{*identity}
	}
	return &prober{client: &http.Client{Timeout: probeTimeout, Transport: &http.Transport{TLSClientConfig: config}}}
}

// ask returns nil if the answer is 200.
func (p *prober) ask(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", url, resp.Status, failedChecks(body))
	}
	return nil
}

func (p *prober) close() { p.client.CloseIdleConnections() }

// failedChecks are the lines of a verbose health answer that tell what is wrong, on one line.
func failedChecks(body []byte) string {
	var failed []string
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "[-]") {
			failed = append(failed, strings.TrimSpace(line))
		}
	}
	if len(failed) == 0 {
		return strings.Join(strings.Fields(string(body)), " ")
	}
	return strings.Join(failed, "; ")
}

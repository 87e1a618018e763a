package controlplane

import (
	"context"
	"crypto/tls"
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

func newProber(config *tls.Config) *prober {
	return &prober{client: &http.Client{Timeout: probeTimeout, Transport: &http.Transport{TLSClientConfig: config}}}
}

func (p *prober) ask(ctx context.Context, url string) error {
	_, err := Get(ctx, p.client, url)
	return err
}

func (p *prober) close() { p.client.CloseIdleConnections() }

// maxAnswer bounds an answer in bytes. That of a kubelet is the largest: a node has some ten pods, of some 10 kB each, and 250 kB of metrics.
const maxAnswer = 16 << 20

// Get reads a page of an API server, of etcd or of a kubelet. It is an error unless the status is 200.
func Get(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s: %.4096s", url, resp.Status, failedChecks(body))
	}
	return body, nil
}

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

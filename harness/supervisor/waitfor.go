package supervisor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/kmsharness/kmsharness/internal/poll"
)

// Timing of the wait for a URL. An answer that takes longer than an ask is no answer yet, and whoever reads the log wants to
// know from time to time what is missing.
const (
	askEvery  = 250 * time.Millisecond
	askLimit  = 2 * time.Second
	tellEvery = 10 * time.Second
)

// parseWaitFor allows addresses of this host only, because the certificate is not verified.
func parseWaitFor(text string) error {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return fmt.Errorf("--wait-for %q: expected http[s]://127.0.0.1:PORT/PATH", text)
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--wait-for %q: expected a loopback address: the certificate is not verified", text)
	}
	return nil
}

// waitFor asks url until it answers 200. It tells at once and from time to time what it waits for.
func waitFor(ctx context.Context, url string, tell func(string)) error {
	client := newAsker()
	defer client.CloseIdleConnections()
	var told time.Time
	return poll.Until(ctx, askEvery, func() (bool, error) {
		err := ask(ctx, client, url)
		if now := time.Now(); err != nil && now.Sub(told) >= tellEvery {
			told = now
			tell(fmt.Sprintf("waiting for %s: %v", url, err))
		}
		return err == nil, nil
	})
}

// newAsker does not verify certificates. The API server's may be for its name only, and the CA is not in the container;
// what listens on a port of this host's loopback can only be talked to, not trusted, and nothing is sent to it.
func newAsker() *http.Client {
	return &http.Client{
		Timeout: askLimit,
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12},
			Proxy:           nil,
		},
		// A redirect may lead off this host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// maxIgnored bounds what is read of an answer so that the connection can be used again.
const maxIgnored = 64 << 10

func ask(ctx context.Context, client *http.Client, at string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // the URL is said already
		}
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxIgnored)
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", resp.Status)
	}
	return nil
}

package network

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual/bubble"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// What a client sends in one instant goes out at different times, and what fails in one instant is told at different times and in the same words.
func TestClientTakesItsTime(t *testing.T) {
	closed := errors.New(forceClosed)
	for name, fails := range map[string]roundTripper{
		"no connection": func(*http.Request) (*http.Response, error) { return nil, closed },
		"a lost watch": func(*http.Request) (*http.Response, error) {
			return &http.Response{Body: io.NopCloser(iotest.ErrReader(closed))}, nil
		},
	} {
		bubble.Test(t, 1, func(t *testing.T) {
			n := New(1)
			var mu sync.Mutex
			sent, told := map[time.Time]bool{}, map[time.Time]bool{}
			client := n.Wrap("client")(roundTripper(func(r *http.Request) (*http.Response, error) {
				mu.Lock()
				defer mu.Unlock()
				sent[time.Now()] = true
				return fails(r)
			}))
			began := time.Now()
			var all sync.WaitGroup
			for _, body := range []string{"one", "two", "three"} {
				all.Go(func() {
					r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://server/"+name, strings.NewReader(body))
					if err != nil {
						t.Error(err)
						return
					}
					response, err := client.RoundTrip(r)
					if err == nil {
						_, err = io.ReadAll(response.Body)
					}
					if !errors.Is(err, net.ErrClosed) {
						t.Errorf("%s: %v, expected %v", name, err, net.ErrClosed)
					}
					mu.Lock()
					defer mu.Unlock()
					told[time.Now()] = true
				})
			}
			all.Wait()
			if took := time.Since(began); len(sent) != 3 || len(told) != 3 || took > 2*moment {
				t.Errorf("%s: sent at %d and told at %d different times within %v, expected 3 and 3 within %v", name, len(sent), len(told), took, 2*moment)
			}
		})
	}
}

// Other errors stay, and the end of an answer is told at once.
func TestClientLeavesAnswersAlone(t *testing.T) {
	bubble.Test(t, 1, func(t *testing.T) {
		n := New(1)
		other := errors.New("other")
		for body, want := range map[io.Reader]error{strings.NewReader("text"): nil, iotest.ErrReader(other): other} {
			client := n.Wrap("client")(roundTripper(func(*http.Request) (*http.Response, error) { return &http.Response{Body: io.NopCloser(body)}, nil }))
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server/", nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if _, err := io.ReadAll(response.Body); err != want || want == nil && time.Since(began) != 0 {
				t.Errorf("%v after %v, expected %v", err, time.Since(began), want)
			}
		}
	})
}

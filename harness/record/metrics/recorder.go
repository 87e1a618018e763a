package metrics

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record"
)

// maxScrape bounds one answer in bytes: a hundred times what a reporter with eight plugins says.
// accepted is the form that costs least, or text.
const accepted = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,text/plain;version=0.0.4;q=0.5"

const maxScrape = 1 << 20

// Recorder scrapes one reporter and records what it says whenever that has changed. A reporter that does not answer is
// no event: why it does not is told by the events of its process.
type Recorder struct {
	Sink record.Sink
	Node string
	URL  string
	// Client bounds a scrape by its Timeout.
	Client *http.Client

	last *history.Metrics
}

// Run scrapes at every tick until ctx ends.
func (r *Recorder) Run(ctx context.Context, tick <-chan time.Time) {
	for {
		select {
		case <-tick:
			_ = r.Scrape(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// Scrape scrapes once.
func (r *Recorder) Scrape(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL, nil)
	if err != nil {
		return fmt.Errorf("scrape %s: %w", r.URL, err)
	}
	req.Header.Set("Accept", accepted)
	resp, err := r.Client.Do(req)
	if err != nil {
		return fmt.Errorf("scrape: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("scrape %s: %s, expected 200 OK", r.URL, resp.Status)
	}
	m, err := Parse(r.Node, expfmt.NewDecoder(io.LimitReader(resp.Body, maxScrape), expfmt.ResponseFormat(resp.Header)))
	if err != nil {
		return fmt.Errorf("scrape %s: %w", r.URL, err)
	}
	if !reflect.DeepEqual(m, r.last) {
		r.last = m
		r.Sink.Record(time.Now(), "metrics/"+r.Node, m)
	}
	return nil
}

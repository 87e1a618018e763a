package observe

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/harness/history"
)

const (
	// scrapeEvery lets three API servers be asked within the minute in which each asks a healthy plugin for its Status. Monitoring asks each of them more often.
	scrapeEvery = 20 * time.Second
	// statusMetric of kube-apiserver has a series for each kekID that a plugin answered to Status.
	statusMetric = "apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds{"
)

// scrape records which kekIDs kube-apiservers have from their plugins, of one of them at a time: behind a load balancer any may answer.
func (r *recorder) scrape(ctx context.Context) {
	if r.options.Operator.Name != core.Operators()[0].Name {
		return // other API servers' metrics are not at this address
	}
	keks, err := r.keks(ctx)
	if found, problem := r.answered("/metrics", err); !found && problem == nil {
		return
	}
	ticker := time.NewTicker(scrapeEvery)
	defer ticker.Stop()
	for {
		if err == nil && keks.ID != "" {
			r.sink.Record(time.Now(), source, keks)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			keks, err = r.keks(ctx) // an outage is recorded by the probe
		}
	}
}

// keks asks over a connection of its own, which a load balancer may lead elsewhere than the last one.
func (r *recorder) keks(ctx context.Context) (*history.KEKs, error) {
	ctx, cancel := context.WithTimeout(ctx, begin)
	defer cancel()
	config := dynamic.ConfigFor(r.options.REST)
	dial := config.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		return dial(ctx, network, address)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("scrape: %w", err)
	}
	defer utilnet.CloseIdleConnectionsFor(client.Transport)
	server, err := rest.UnversionedRESTClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("scrape: %w", err)
	}
	answer, err := server.Get().AbsPath("/metrics").Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	return parseKEKs(answer)
}

var labels = regexp.MustCompile(`(\w+)="([^"]*)"`)

// parseKEKs reads metrics line by line: those of a large cluster take megabytes.
func parseKEKs(from io.Reader) (*history.KEKs, error) {
	out := &history.KEKs{Hashes: []string{}}
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		series, ok := strings.CutPrefix(lines.Text(), statusMetric)
		if !ok {
			continue
		}
		for _, label := range labels.FindAllStringSubmatch(series, -1) {
			switch label[1] {
			case "apiserver_id_hash":
				out.ID = label[2]
			case "key_id_hash":
				out.Hashes = append(out.Hashes, label[2])
			}
		}
	}
	slices.Sort(out.Hashes)
	out.Hashes = slices.Compact(out.Hashes)
	return out, lines.Err()
}

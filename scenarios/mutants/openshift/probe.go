package openshift

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	kmsv2 "k8s.io/kms/apis/v2"
)

// Statuses, and the longest texts that the CRD accepts.
const (
	healthy, unhealthy, failed = "Healthy", "Unhealthy", "Error"
	maxText                    = 1024
)

// report is one entry of the list healthReports.
type report struct {
	NodeName        string `json:"nodeName"`
	KeyID           string `json:"keyID"`
	Status          string `json:"status"`
	Detail          string `json:"detail,omitempty"`
	LastCheckedTime string `json:"lastCheckedTime"`
	RemoteKeyID     string `json:"remoteKeyID,omitempty"`
}

// prober asks plugins for their status, and remembers the remote key that each named last.
type prober struct {
	options
	known []string           // by socket
	last  []backingOff       // by socket
	kept  []*grpc.ClientConn // of grpcBackOff
}

func newProber(o options) (*prober, error) {
	p := &prober{options: o, known: make([]string, len(o.sockets)), last: make([]backingOff, len(o.sockets))}
	for _, s := range o.sockets {
		if o.mistake != grpcBackOff {
			break
		}
		conn, err := o.dial(s)
		if err != nil {
			return nil, err
		}
		p.kept = append(p.kept, conn)
	}
	return p, nil
}

// dial makes a connection with gRPC's own settings: it backs off for up to two minutes when it cannot connect.
func (o options) dial(endpoint string) (*grpc.ClientConn, error) {
	with := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	if o.host.DialFunc != nil {
		with = append(with, grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			return o.host.Dial(ctx, "unix", o.host.File(strings.TrimPrefix(path, "unix://")))
		}))
	}
	return grpc.NewClient(endpoint, with...)
}

// all probes every plugin at once, so that one that hangs does not delay the others.
func (p *prober) all(ctx context.Context) []report {
	if p.mistake == socketsByScan {
		p.scan()
	}
	reports := make([]report, len(p.sockets))
	var probes sync.WaitGroup
	for i, s := range p.sockets {
		probes.Go(func() {
			if p.backOff && p.last[i].skips() {
				reports[i] = p.last[i].report
				return
			}
			r := report{NodeName: p.node, KeyID: socket.FindStringSubmatch(s)[1], LastCheckedTime: time.Now().UTC().Format(time.RFC3339)}
			answer, err := p.status(ctx, i)
			p.judge(&r, answer, err, i)
			p.last[i].note(r)
			reports[i] = r
		})
	}
	probes.Wait()
	return reports
}

// backingOff is what was reported of a plugin, and its failures in a row. Its zero value is a plugin that was not called.
type backingOff struct {
	report   report
	failures int
	skipped  bool
}

func (b *backingOff) note(r report) {
	b.report = r
	if b.failures++; r.Status == healthy {
		b.failures = 0
	}
}

// skips reports whether the next call is left out: after two failures every second one is. A longer back-off would let the report grow stale.
func (b *backingOff) skips() bool {
	b.skipped = b.failures >= 2 && !b.skipped
	return b.skipped
}

// scan adds the plugins whose sockets lie in the folder of the first.
func (p *prober) scan() {
	found, _ := filepath.Glob(filepath.Join(filepath.Dir(strings.TrimPrefix(p.sockets[0], "unix://")), "kms-*.sock"))
	for _, f := range found {
		if s := "unix://" + f; socket.MatchString(s) && !slices.Contains(p.sockets, s) {
			p.sockets, p.known = append(p.sockets, s), append(p.known, "")
			p.last = append(p.last, backingOff{})
		}
	}
}

// status makes a connection for each probe: none is older than the plugin.
func (p *prober) status(ctx context.Context, i int) (*kmsv2.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, p.readTimeout)
	defer cancel()
	if p.kept != nil {
		return kmsv2.NewKeyManagementServiceClient(p.kept[i]).Status(ctx, &kmsv2.StatusRequest{})
	}
	conn, err := p.dial(p.sockets[i])
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return kmsv2.NewKeyManagementServiceClient(conn).Status(ctx, &kmsv2.StatusRequest{})
}

// judge says what a plugin's answer means.
func (p *prober) judge(r *report, answer *kmsv2.StatusResponse, err error, i int) {
	remote := answer.GetKeyId()
	usable := remote != "" && len(remote) <= maxText
	switch {
	case err != nil:
		r.Status, r.Detail = failed, err.Error()
	case answer.GetHealthz() != "ok":
		r.Status, r.Detail = unhealthy, answer.GetHealthz()
	case !usable:
		r.Status, r.Detail = unhealthy, fmt.Sprintf("key_id has %d bytes, expected 1 to %d", len(remote), maxText)
	default:
		r.Status = healthy
	}
	if p.mistake == keyIDLeftOut {
		if r.Status == healthy {
			r.RemoteKeyID = remote
		}
	} else {
		if err == nil && usable {
			p.known[i] = remote
		}
		r.RemoteKeyID = cmp.Or(p.known[i], "unknown")
	}
	if p.mistake != detailAsItCame {
		r.Detail = cleaned(r.Detail)
	}
}

// cleaned is a text that the API accepts, whatever a plugin sent: valid UTF-8 without control characters, and not too long.
func cleaned(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
	if runes := []rune(text); len(runes) > maxText {
		return string(runes[:maxText-2]) + " …"
	}
	return text
}

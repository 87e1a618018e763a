package kind

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
)

// etcd is the member of a node. It can stand still; one that ends is the kubelet's to start again, whenever that likes.
type etcd struct {
	container, node string
	tell            func(at time.Time, p history.Process)
}

var _ live.Unit = (*etcd)(nil)

func (e *etcd) signal(ctx context.Context, name, state string) error {
	if _, err := inside(ctx, e.container, nil, "pkill", "-"+name, "-x", "etcd"); err != nil {
		return fmt.Errorf("etcd of %s: %w", e.node, err)
	}
	e.tell(time.Now(), history.Process{Role: history.RoleEtcd, Node: e.node, State: state})
	return nil
}

// Pause implements live.Unit.
func (e *etcd) Pause(ctx context.Context) error { return e.signal(ctx, "STOP", history.ProcessPaused) }

// Resume implements live.Unit.
func (e *etcd) Resume(ctx context.Context) error {
	return e.signal(ctx, "CONT", history.ProcessResumed)
}

var errEtcdOnlyPauses = errors.New("etcd in a static pod can be paused and resumed here: the kubelet starts it again as soon as it ends")

// Start implements live.Unit.
func (e *etcd) Start(context.Context) error { return errEtcdOnlyPauses }

// Stop implements live.Unit.
func (e *etcd) Stop(context.Context) error { return errEtcdOnlyPauses }

// Kill implements live.Unit.
func (e *etcd) Kill(context.Context) error { return errEtcdOnlyPauses }

// Status implements live.Unit.
func (e *etcd) Status() live.Status { return live.Status{Phase: live.Running} }

// broken is a unit that could not be made; whoever uses it learns why.
type broken struct{ err error }

func (b broken) Start(context.Context) error  { return b.err }
func (b broken) Stop(context.Context) error   { return b.err }
func (b broken) Kill(context.Context) error   { return b.err }
func (b broken) Pause(context.Context) error  { return b.err }
func (b broken) Resume(context.Context) error { return b.err }
func (b broken) Status() live.Status          { return live.Status{} }

// Etcd implements live.Plane.
func (p *plane) Etcd(node string) ([]live.Target, error) {
	var all []live.Target
	for _, n := range p.nodes.List() {
		if node == "" || node == "all" || node == n.Name {
			all = append(all, live.Target{Unit: &etcd{container: p.container(n.Name), tell: p.Tell, node: n.Name}, Identity: history.Process{Role: history.RoleEtcd, Node: n.Name}})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no node %q", node)
	}
	return all, nil
}

// ReadEtcd implements live.Plane.
func (p *plane) ReadEtcd(ctx context.Context, key string) (value []byte, err error) {
	err = p.throughEtcd(func(transport http.RoundTripper, url string) (err error) {
		value, err = live.ReadEtcdGateway(ctx, transport, url, key)
		return err
	})
	return value, err
}

// RangeEtcd implements live.Plane.
func (p *plane) RangeEtcd(ctx context.Context, r live.Range) (found []live.KeyValue, more bool, err error) {
	err = p.throughEtcd(func(transport http.RoundTripper, url string) (err error) {
		found, more, err = live.RangeEtcdGateway(ctx, transport, url, r)
		return err
	})
	return found, more, err
}

// throughEtcd asks the member of any node.
func (p *plane) throughEtcd(ask func(transport http.RoundTripper, url string) error) error {
	transport := &http.Transport{TLSClientConfig: p.etcdTLS, DisableKeepAlives: true}
	var errs []error
	for _, n := range p.nodes.List() {
		err := ask(transport, "https://"+p.address(n.Name)+":"+portEtcd)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// loadEtcdTLS reads the certificates that etcd's clients on a node use.
func loadEtcdTLS(ctx context.Context, container string) (*tls.Config, error) {
	read := func(file string) ([]byte, error) {
		text, err := inside(ctx, container, nil, "cat", "/etc/kubernetes/pki/"+file)
		return []byte(text), err
	}
	ca, err1 := read("etcd/ca.crt")
	cert, err2 := read("etcd/healthcheck-client.crt")
	key, err3 := read("etcd/healthcheck-client.key")
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("certificates of etcd: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("certificates of etcd: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// removeMember takes the etcd member of a node out of the cluster, through another node's. One that is not there is no
// error.
func (p *plane) removeMember(ctx context.Context, name string) error {
	var errs []error
	for _, n := range p.nodes.List() {
		err := p.removeMemberThrough(ctx, n.Name, name)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("remove the etcd member of %s: %w", name, errors.Join(errs...))
}

// member as etcd's JSON gateway shows it: 64-bit numbers are texts.
type member struct {
	ID   string `json:"ID"`
	Name string `json:"name"`
}

func (p *plane) removeMemberThrough(ctx context.Context, node, gone string) error {
	var list struct {
		Members []member `json:"members"`
	}
	if err := p.askEtcd(ctx, node, "/v3/cluster/member/list", struct{}{}, &list); err != nil {
		return err
	}
	for _, m := range list.Members {
		if m.Name == gone {
			return p.askEtcd(ctx, node, "/v3/cluster/member/remove", member{ID: m.ID}, nil)
		}
	}
	return nil
}

// askEtcd asks the member of a node through its JSON gateway.
func (p *plane) askEtcd(ctx context.Context, node, path string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	url := "https://" + p.address(node) + ":" + portEtcd + path
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: p.etcdTLS, DisableKeepAlives: true}
	response, err := transport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %.200s", path, response.Status, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}

package live

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
	healthv1 "github.com/kmsharness/kmsharness/contract/proto/kmsharness/health/v1"
	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/record/audit"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/host"
)

// attempt makes a request under the identity of a node's reporter, straight to that node's API server, and checks how it was treated.
// A stream goes to the aggregator.
func (st *statuses) attempt(ctx context.Context, a *scenario.Attempt) error {
	nodes, err := st.e.procs.selectNodes(a.As, true)
	if err != nil {
		return err
	}
	as := nodes[0]
	if a.Method == scenario.AttemptStream {
		return st.attemptStream(ctx, a, as)
	}
	request, err := st.attemptOf(a, as.Name)
	if err != nil {
		return err
	}
	request.auditID = st.e.recorder.NameAttempt
	c, err := st.clientOf(ctx, as)
	if err != nil {
		return err
	}
	defer c.Close()
	return a.Each(request.method+" "+request.path, func(manager string) (int, string, error) {
		if manager != "" {
			request.query.Set("fieldManager", manager)
		}
		return request.send(ctx, c)
	})
}

// clientOf is a client of a node's API server with the identity of the node's reporter.
func (st *statuses) clientOf(ctx context.Context, as *cluster.Node) (*cluster.Client, error) {
	config, err := st.e.sut.configOf(ctx, as)
	if err != nil {
		return nil, err
	}
	config.Host, config.UserAgent = as.URL, "kmsharness-attempt"
	return cluster.NewClient(config)
}

// apiRequest is a request to the API by hand: a client library would refuse some of what is to be tried.
type apiRequest struct {
	method, path, contentType string
	query                     url.Values
	body                      []byte
	auditID                   func() string // names the next request
}

// attemptOf is the request of an attempt: what the verb of the API needs, or one of the writes that a stolen credential is worth trying, whose bodies
// depend on the cluster's wire form. An unknown verb is an error that names all.
func (st *statuses) attemptOf(a *scenario.Attempt, as string) (apiRequest, error) {
	verb := a.Method
	switch verb {
	case "apply-condition":
		return st.applyAs(as, conditionOf(a, contract.ConditionType(cmp.Or(a.Node, as))))
	case "apply-entry":
		return st.applyAs(as, st.entryElsewhere(as, ""))
	case "apply-entries":
		return st.applyAs(as, operand.EntriesOf(st.e.operator.TypedPath, as, a.Size, time.Now()))
	case "apply-rollup":
		return st.applyAs(as, conditionOf(a, contract.ConditionDegraded))
	}
	r := apiRequest{path: resourcePath(a), query: url.Values{}, contentType: "application/json"}
	switch verb {
	case "get", "list":
		r.method = http.MethodGet
	case "watch":
		r.method = http.MethodGet
		r.query.Set("watch", "true")
		r.query.Set("timeoutSeconds", "1")
	case "create":
		r.method, r.path = http.MethodPost, strings.TrimSuffix(r.path, "/"+a.Name)
	case "update":
		r.method = http.MethodPut
	case "delete":
		r.method = http.MethodDelete
	case "patch":
		r.method, r.contentType = http.MethodPatch, audit.ContentTypeMerge
	case "apply":
		r.method, r.contentType = http.MethodPatch, audit.ContentTypeApply
		r.query.Set("fieldManager", contract.FieldManager(as))
		r.query.Set("force", "true")
	default:
		return r, fmt.Errorf("verb %q: expected get, list, watch, create, update, patch, apply, delete, apply-condition, apply-entry, apply-entries or apply-rollup", verb)
	}
	if r.method == http.MethodGet || r.method == http.MethodDelete {
		return r, nil
	}
	var err error
	r.body, err = a.JSON()
	return r, err
}

func conditionOf(a *scenario.Attempt, conditionType string) cluster.Object {
	return cluster.Object{"conditions": []any{cluster.Object{"type": conditionType, "status": "True", "reason": contract.ReporterConditionReason, "message": a.Text(),
		"lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}}}
}

// applyAs applies a status to the operator CR under the field manager of a node's reporter.
func (st *statuses) applyAs(as string, status cluster.Object) (apiRequest, error) {
	body, err := json.Marshal(cluster.NewObject("operator.openshift.io/v1", st.e.operator.Kind, core.OperatorObject, cluster.Object{"status": status}).Object)
	r := st.e.operator.Resource
	return apiRequest{
		method: http.MethodPatch, contentType: audit.ContentTypeApply, body: body,
		path:  "/apis/" + r.Group + "/" + r.Version + "/" + r.Resource + "/" + core.OperatorObject + "/status",
		query: url.Values{"fieldManager": {contract.FieldManager(as)}, "force": {"true"}},
	}, err
}

// resourcePath is the path of an object; every API that is of interest here is at v1.
func resourcePath(a *scenario.Attempt) string {
	group, plural, subresource := a.Path()
	parts := []string{"api", "v1"}
	if group != "" {
		parts = []string{"apis", group, "v1"}
	}
	if a.Namespace != "" {
		parts = append(parts, "namespaces", a.Namespace)
	}
	parts = append(parts, plural, a.Name, subresource)
	return "/" + strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "/")
}

// send returns the status and the text of the API server's answer.
func (r apiRequest) send(ctx context.Context, c *cluster.Client) (code int, text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.RequestTimeout)
	defer cancel()
	target := c.URL + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, r.method, target, bytes.NewReader(r.body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Content-Type", r.contentType)
	request.Header.Set("Audit-ID", r.auditID())
	response, err := c.HTTP.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	return response.StatusCode, string(body), err
}

// attemptStream opens a stream to the aggregator with what a stolen identity of a reporter allows, going round the replicas until one leads, and
// ends it once it stands.
func (st *statuses) attemptStream(ctx context.Context, a *scenario.Attempt, as *cluster.Node) error {
	config, err := st.streamTLS(a, as)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cluster.RequestTimeout)
	defer cancel()
	refused := status.New(codes.Unavailable, "there is no aggregator")
	for _, address := range as.ReporterPlace.Aggregators {
		if conn, err := st.e.controlPlane.Traits.Host.Dial(ctx, "tcp", address); err != nil {
			continue // a replica that does not run refuses nobody
		} else if err := conn.Close(); err != nil {
			return err
		}
		refused = status.Convert(st.openStream(ctx, address, config, a))
		if refused.Code() != codes.FailedPrecondition { // it leads, or did not ask
			break
		}
	}
	st.e.record(a.History(as.Name, refused.Code(), refused.Message()))
	return a.JudgeStream(refused.Code(), refused.Message())
}

// openStream opens a stream, which calls the node of an attempt its own unless that is empty. nil: it stood.
func (st *statuses) openStream(ctx context.Context, address string, config *tls.Config, a *scenario.Attempt) error {
	by := dialer(st.e.traits.Host, "tcp")
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(credentials.NewTLS(config)), grpc.WithDisableServiceConfig(), by)
	if err != nil {
		return err
	}
	defer conn.Close()
	if a.Node != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, scenario.StreamNode, a.Node)
	}
	stream, err := healthv1.NewHealthServiceClient(conn).Report(ctx)
	if err != nil {
		return err
	}
	response, err := stream.Recv()
	if err != nil {
		return err
	}
	return private(response, slices.DeleteFunc(st.e.nodeNames(), func(n string) bool { return n == a.As }))
}

// private is an error if what a reporter is sent names other nodes, also in fields that it does not know: a reporter learns nothing of others.
func private(response *healthv1.ReportResponse, others []string) error {
	text, err := proto.Marshal(response)
	if err != nil {
		return err
	}
	for _, node := range others {
		if bytes.Contains(text, []byte(node)) {
			return status.Errorf(codes.DataLoss, "the aggregator sends statuses: its first message names %s", node)
		}
	}
	return nil
}

// streamTLS is the configuration of a client that shows what an attempt says.
func (st *statuses) streamTLS(a *scenario.Attempt, as *cluster.Node) (*tls.Config, error) {
	authority, err := st.e.controlPlane.Credentials.RESTConfig(contract.AggregatorIdentity, nil, as.URL)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: x509.NewCertPool(), ServerName: contract.AggregatorServerName}
	config.RootCAs.AppendCertsFromPEM(authority.CAData)
	shown, err := st.certificate(a, as.Name)
	if err != nil {
		return nil, fmt.Errorf("certificate of the attempt: %w", err)
	}
	// Also one whose authority the server does not ask for.
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &shown, nil }
	return config, nil
}

// certificate is what an attempt shows; an empty one is none.
func (st *statuses) certificate(a *scenario.Attempt, as string) (tls.Certificate, error) {
	user, groups, life := contract.ReporterIdentity(as), []string{contract.ReporterGroup}, time.Duration(0)
	switch a.Certificate {
	case scenario.CertificateNone:
		return tls.Certificate{}, nil
	case scenario.CertificateForged:
		return forged(contract.ReporterIdentity(cmp.Or(a.Node, as)), groups)
	case scenario.CertificateForeign:
		user, groups = "system:node:"+as, []string{"system:nodes"}
	case scenario.CertificateExpired:
		life = -time.Second
	}
	text, _, err := st.e.controlPlane.Credentials.Certificate(user, groups, life)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(text, text)
}

// forged is a certificate that is signed by itself.
func forged(user string, groups []string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: user, Organization: groups},
		NotBefore: now.Add(-time.Minute), NotAfter: now.Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// dialer connects the harness's gRPC clients, by addresses without a scheme.
func dialer(h host.Host, network string) grpc.DialOption {
	return grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		return h.Dial(ctx, network, address)
	})
}

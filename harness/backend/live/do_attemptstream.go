package live

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/kmsharness/kmsharness/contract"
	healthv1 "github.com/kmsharness/kmsharness/contract/proto/kmsharness/health/v1"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// attemptStream opens a stream to the aggregator with what a stolen identity of a reporter allows, going round the replicas until one leads, and
// ends it once it stands.
func (st *statuses) attemptStream(ctx context.Context, a *scenario.Attempt, as *Node) error {
	config, err := st.streamTLS(a, as)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	refused := status.New(codes.Unavailable, "there is no aggregator")
	for _, address := range as.ReporterPlace.Aggregators {
		if conn, err := new(net.Dialer).DialContext(ctx, "tcp", address); err != nil {
			continue // a replica that does not run refuses nobody
		} else if err := conn.Close(); err != nil {
			return err
		}
		refused = status.Convert(openStream(ctx, address, config, a.Node))
		if refused.Code() != codes.FailedPrecondition { // it leads, or did not ask
			break
		}
	}
	st.e.record(a.History(as.Name, refused.Code(), refused.Message()))
	return a.JudgeStream(refused.Code(), refused.Message())
}

// openStream opens a stream, which calls a node its own unless it is empty. nil: it stood.
func openStream(ctx context.Context, address string, config *tls.Config, node string) error {
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(credentials.NewTLS(config)), grpc.WithDisableServiceConfig())
	if err != nil {
		return err
	}
	defer conn.Close()
	if node != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, scenario.StreamNode, node)
	}
	stream, err := healthv1.NewHealthServiceClient(conn).Report(ctx)
	if err != nil {
		return err
	}
	_, err = stream.Recv()
	return err
}

// streamTLS is the configuration of a client that shows what an attempt says.
func (st *statuses) streamTLS(a *scenario.Attempt, as *Node) (*tls.Config, error) {
	authority, err := st.e.controlPlane.RESTConfig(contract.AggregatorIdentity, nil, as.Server.URL())
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
		return forged(contract.ReporterIdentity(orDefault(a.Node, as)), groups)
	case scenario.CertificateForeign:
		user, groups = "system:node:"+as, []string{"system:nodes"}
	case scenario.CertificateExpired:
		life = -time.Second
	}
	text, _, err := st.e.controlPlane.Certificate(user, groups, life)
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

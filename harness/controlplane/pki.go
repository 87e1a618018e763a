package controlplane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// validity is longer than any run, and short enough that a forgotten kubeconfig is harmless. The clock of the machine
// may be set back a little.
const (
	validity = 24 * time.Hour
	backdate = time.Hour
)

// pki is the certificate authority of a control plane; it signs servers and clients.
type pki struct {
	dir   string
	cert  *x509.Certificate
	key   crypto.Signer
	pem   []byte
	roots *x509.CertPool
}

// identity is a certificate and its key, PEM.
type identity struct{ cert, key []byte }

func (i identity) tls() (tls.Certificate, error) { return tls.X509KeyPair(i.cert, i.key) }

// newPKI makes an authority and writes its certificate and the key of service accounts below dir.
func newPKI(dir string) (*pki, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	p, err := generatePKI()
	if err != nil {
		return nil, err
	}
	p.dir = dir
	return p, errors.Join(os.WriteFile(p.caFile(), p.pem, 0o600), p.writeServiceAccountKey())
}

// generatePKI makes an authority that is in no file.
func generatePKI() (*pki, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template := certificate("kmsharness-ca")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	p := &pki{cert: cert, key: key, pem: encode(certutil.CertificateBlockType, der), roots: x509.NewCertPool()}
	p.roots.AddCert(cert)
	return p, nil
}

func (p *pki) caFile() string             { return filepath.Join(p.dir, "ca.crt") }
func (p *pki) serviceAccountFile() string { return filepath.Join(p.dir, "service-account.key") }

// writeServiceAccountKey makes the key that all API servers sign and verify service account tokens with.
func (p *pki) writeServiceAccountKey() error {
	text, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return err
	}
	return os.WriteFile(p.serviceAccountFile(), text, 0o600)
}

// serving writes the certificate of a server on 127.0.0.1, which may have further names.
func (p *pki) serving(name string, further ...string) (certFile, keyFile string, err error) {
	id, err := p.server(name, append([]string{"kubernetes", "kubernetes.default", "kubernetes.default.svc"}, further...)...)
	if err != nil {
		return "", "", err
	}
	certFile, keyFile = filepath.Join(p.dir, name+".crt"), filepath.Join(p.dir, name+".key")
	return certFile, keyFile, errors.Join(os.WriteFile(certFile, id.cert, 0o600), os.WriteFile(keyFile, id.key, 0o600))
}

// server makes the identity of a server on 127.0.0.1 with further names.
func (p *pki) server(name string, further ...string) (identity, error) {
	template := certificate(name)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	template.DNSNames = append([]string{"localhost"}, further...)
	id, err := p.sign(template)
	if err != nil {
		return identity{}, fmt.Errorf("certificate of %s: %w", name, err)
	}
	return id, nil
}

// client makes an identity: Kubernetes reads the user from the common name and the groups from the organisations.
func (p *pki) client(user string, groups []string) (identity, error) {
	id, _, err := p.clientFor(user, groups, 0)
	return id, err
}

// clientFor is client with an expiry, unless life is 0.
func (p *pki) clientFor(user string, groups []string, life time.Duration) (id identity, expires time.Time, err error) {
	template := certificate(user)
	if life != 0 {
		template.NotAfter = time.Now().Add(life).Truncate(time.Second)
	}
	template.Subject.Organization = groups
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if id, err = p.sign(template); err != nil {
		return identity{}, time.Time{}, fmt.Errorf("certificate of user %q: %w", user, err)
	}
	return id, template.NotAfter, nil
}

func (p *pki) sign(template *x509.Certificate) (identity, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return identity{}, err
	}
	template.SerialNumber = serial
	key, err := newKey()
	if err != nil {
		return identity{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, p.cert, key.Public(), p.key)
	if err != nil {
		return identity{}, err
	}
	text, err := keyutil.MarshalPrivateKeyToPEM(key)
	return identity{cert: encode(certutil.CertificateBlockType, der), key: text}, err
}

func certificate(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-backdate),
		NotAfter:     now.Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

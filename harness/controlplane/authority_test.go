package controlplane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func selfSigned(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	template := certificate("somebody-else")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return encode("CERTIFICATE", der)
}

// An authority of another cluster signs clients that its own certificate vouches for, whatever form its key is written in.
func TestLoadAuthority(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ec, err := x509.MarshalECPrivateKey(ecKey)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(rsaKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		signer crypto.Signer
		key    []byte
	}{
		"PKCS #1": {rsaKey, encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey))},
		"SEC 1":   {ecKey, encode("EC PRIVATE KEY", ec)},
		"PKCS #8": {rsaKey, encode("PRIVATE KEY", pkcs8)},
	} {
		ca := selfSigned(t, c.signer)
		a, err := LoadAuthority(ca, c.key)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		a.ServerName = "localhost"
		config, err := a.RESTConfig("somebody", []string{"a-group"}, "https://127.0.0.1:1")
		if err != nil || config.ServerName != "localhost" {
			t.Fatalf("%s: %+v, %v", name, config, err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(ca)
		block, _ := pem.Decode(config.CertData)
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := selfSigned(t, rsaKey)
	for name, c := range map[string][2][]byte{"no certificate": {nil, nil}, "no key": {good, nil}, "nonsense": {good, encode("PRIVATE KEY", []byte("x"))}} {
		if _, err := LoadAuthority(c[0], c[1]); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// A server that an authority of another cluster has signed is believed under its names, by who has the authority from the APIService.
func TestServingOfAnotherAuthority(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ec, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	a, err := LoadAuthority(selfSigned(t, key), encode("EC PRIVATE KEY", ec))
	if err != nil {
		t.Fatal(err)
	}
	certPEM, keyPEM, err := a.Serving("oauth-apiserver", "api.openshift-oauth-apiserver.svc")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	object := a.APIService(APIService{Group: "g.example.com", Version: "v1", Namespace: "openshift-oauth-apiserver", Name: "api"}, 443)
	bundle, _, err := unstructured.NestedString(object.Object, "spec", "caBundle")
	if err != nil {
		t.Fatal(err)
	}
	ca, err := base64.StdEncoding.DecodeString(bundle)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	for name, ok := range map[string]bool{"api.openshift-oauth-apiserver.svc": true, "localhost": true, "api.openshift-apiserver.svc": false} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	if port, _, _ := unstructured.NestedInt64(object.Object, "spec", "service", "port"); object.GetName() != "v1.g.example.com" || port != 443 {
		t.Errorf("%v", object)
	}
}

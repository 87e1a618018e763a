package controlplane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/keyutil"
)

func part(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// keys of service accounts, in PEM: that of this package's control planes, and that of kubeadm's.
func keys(t *testing.T) map[string][]byte {
	t.Helper()
	elliptic, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"ES256": elliptic, "RS256": text}
}

// signedBy reports whether a signature is that of a key.
func signedBy(t *testing.T, text []byte, signed string, signature []byte) bool {
	t.Helper()
	parsed, err := keyutil.ParsePrivateKeyPEM(text)
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256([]byte(signed))
	if key, ok := parsed.(*rsa.PrivateKey); ok {
		return rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, digest[:], signature) == nil
	}
	key := parsed.(*ecdsa.PrivateKey)
	return len(signature) == 64 && ecdsa.Verify(&key.PublicKey, digest[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:]))
}

func TestReissueMovesTheTimesAndSigns(t *testing.T) {
	for algorithm, key := range keys(t) {
		header := part(t, map[string]any{"alg": algorithm, "kid": "k"})
		token := header + "." + part(t, map[string]any{"iat": 1000, "nbf": 1000, "exp": 1600, "sub": "s", "kubernetes.io": map[string]any{"node": map[string]any{"name": "cp-1"}}}) + ".x"
		made, err := Reissue(key, token, 10*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(made, ".")
		claims, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil {
			t.Fatal(err)
		}
		if want := `{"exp":1000,"iat":400,"kubernetes.io":{"node":{"name":"cp-1"}},"nbf":400,"sub":"s"}`; parts[0] != header || string(claims) != want {
			t.Errorf("header %q, claims %s, expected %s", parts[0], claims, want)
		}
		signature, err := base64.RawURLEncoding.DecodeString(parts[2])
		if err != nil || !signedBy(t, key, parts[0]+"."+parts[1], signature) {
			t.Errorf("%s: the signature is not that of the API servers' key (%v)", algorithm, err)
		}
	}
}

func TestReissueRefusesWhatIsNoToken(t *testing.T) {
	key := keys(t)["ES256"]
	for token, want := range map[string]string{
		"":            "expected header.claims.signature",
		"a.b":         "expected header.claims.signature",
		"a.!.c":       "claims: ",
		"a.e30.c":     "claim iat: ",
		"a.W10.c":     "claims: ",
		"a.bm90ISE.c": "claims: ",
	} {
		if _, err := reissue(key, token, time.Minute); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, expected %s…", token, err, want)
		}
	}
}

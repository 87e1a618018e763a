package controlplane

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"os"
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

func TestReissueMovesTheTimesAndSigns(t *testing.T) {
	p, err := newPKI(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	header := part(t, object{"alg": "ES256", "kid": "k"})
	token := header + "." + part(t, object{"iat": 1000, "nbf": 1000, "exp": 1600, "sub": "s", "kubernetes.io": object{"node": object{"name": "cp-1"}}}) + ".x"
	made, err := p.reissue(token, 10*time.Minute)
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
	if err != nil || len(signature) != 64 {
		t.Fatalf("a signature of %d bytes, %v", len(signature), err)
	}
	text, err := os.ReadFile(p.serviceAccountFile())
	if err != nil {
		t.Fatal(err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(text)
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if !ecdsa.Verify(&key.(*ecdsa.PrivateKey).PublicKey, digest[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		t.Error("the signature is not that of the API servers' key")
	}
}

func TestReissueRefusesWhatIsNoToken(t *testing.T) {
	p, err := newPKI(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]string{
		"":            "expected header.claims.signature",
		"a.b":         "expected header.claims.signature",
		"a.!.c":       "claims: ",
		"a.e30.c":     "claim iat: ",
		"a.W10.c":     "claims: ",
		"a.bm90ISE.c": "claims: ",
	} {
		if _, err := p.reissue(token, time.Minute); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, expected %s…", token, err, want)
		}
	}
}

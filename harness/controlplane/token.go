package controlplane

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/util/keyutil"
)

// TokenLeeway is how long after its expiry API servers still accept the token of a service account: the leeway of go-jose, for clocks that differ.
// TokenCache is how much longer they may accept one that was used before: they remember for so long that it was valid.
const (
	TokenLeeway = time.Minute
	TokenCache  = 10 * time.Second
)

// Reissue signs a token of a service account again, as one that an API server made so much earlier. All other claims stay as they were. API servers refuse
// to make a token that is valid for less than ten minutes, so a token that expires soon is an older one.
func (cp *ControlPlane) Reissue(token string, earlier time.Duration) (string, error) {
	made, err := cp.pki.reissue(token, earlier)
	if err != nil {
		return "", fmt.Errorf("reissue the token of a service account: %w", err)
	}
	return made, nil
}

func (p *pki) reissue(token string, earlier time.Duration) (string, error) {
	header, rest, _ := strings.Cut(token, ".")
	payload, _, ok := strings.Cut(rest, ".")
	if !ok {
		return "", errors.New("expected header.claims.signature")
	}
	claims, err := dated(payload, earlier)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(p.serviceAccountFile())
	if err != nil {
		return "", fmt.Errorf("read the key of service accounts: %w", err)
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(text)
	if err != nil {
		return "", fmt.Errorf("key of service accounts: %w", err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return "", fmt.Errorf("key of service accounts: expected an ECDSA key, got %T", parsed)
	}
	signed := header + "." + claims
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	half := (key.Params().BitSize + 7) / 8
	signature := append(r.FillBytes(make([]byte, half)), s.FillBytes(make([]byte, half))...) // RFC 7518, 3.4
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// dated are claims whose times are earlier.
func dated(payload string, earlier time.Duration) (string, error) {
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return "", fmt.Errorf("claims: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	claims := object{}
	if err := decoder.Decode(&claims); err != nil {
		return "", fmt.Errorf("claims: %w", err)
	}
	for _, name := range []string{"iat", "nbf", "exp"} {
		number, _ := claims[name].(json.Number)
		at, err := number.Int64()
		if err != nil {
			return "", fmt.Errorf("claim %s: %w", name, err)
		}
		claims[name] = at - int64(earlier/time.Second)
	}
	if text, err = json.Marshal(claims); err != nil {
		return "", fmt.Errorf("claims: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(text), nil
}

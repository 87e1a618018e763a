package controlplane

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/keyutil"
)

// TokenLeeway is how long after its expiry API servers still accept the token of a service account: the leeway of go-jose, for clocks that differ.
// TokenCache is how much longer they may accept one that was used before: they remember for so long that it was valid.
const (
	TokenLeeway = time.Minute
	TokenCache  = 10 * time.Second
)

// AccountKey is the key that all API servers sign and verify the tokens of service accounts with, in PEM.
func (cp *ControlPlane) AccountKey() ([]byte, error) { return os.ReadFile(cp.serviceAccountKey()) }

// Reissue signs a token of a service account again with the API servers' key, as one that was made so much earlier. All other claims stay as they were. API
// servers refuse to make a token that is valid for less than ten minutes, so a token that expires soon is an older one.
func Reissue(key []byte, token string, earlier time.Duration) (string, error) {
	made, err := reissue(key, token, earlier)
	if err != nil {
		return "", fmt.Errorf("reissue the token of a service account: %w", err)
	}
	return made, nil
}

func reissue(key []byte, token string, earlier time.Duration) (string, error) {
	header, rest, _ := strings.Cut(token, ".")
	payload, _, ok := strings.Cut(rest, ".")
	if !ok {
		return "", errors.New("expected header.claims.signature")
	}
	claims, err := dated(payload, earlier)
	if err != nil {
		return "", err
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(key)
	if err != nil {
		return "", fmt.Errorf("key of service accounts: %w", err)
	}
	return signed(parsed, header+"."+claims)
}

// SignToken makes a token of a service account, by the API servers' key in PEM.
func SignToken(key []byte, claims any) (string, error) {
	fail := func(err error) (string, error) { return "", fmt.Errorf("token of a service account: %w", err) }
	text, err := json.Marshal(claims)
	if err != nil {
		return fail(err)
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(key)
	if err != nil {
		return fail(err)
	}
	algorithm := "ES256"
	if _, is := parsed.(*rsa.PrivateKey); is {
		algorithm = "RS256"
	}
	header := `{"alg":"` + algorithm + `","typ":"JWT"}`
	token, err := signed(parsed, base64.RawURLEncoding.EncodeToString([]byte(header))+"."+base64.RawURLEncoding.EncodeToString(text))
	if err != nil {
		return fail(err)
	}
	return token, nil
}

// LegacyClaims are those of the token of a Secret, as the token controller makes them: nothing in them expires.
type LegacyClaims struct {
	Issuer     string    `json:"iss"`
	Subject    string    `json:"sub"`
	Namespace  string    `json:"kubernetes.io/serviceaccount/namespace"`
	Secret     string    `json:"kubernetes.io/serviceaccount/secret.name"`
	Account    string    `json:"kubernetes.io/serviceaccount/service-account.name"`
	AccountUID types.UID `json:"kubernetes.io/serviceaccount/service-account.uid"`
}

// LegacyIssuer is the issuer of such tokens.
const LegacyIssuer = "kubernetes/serviceaccount"

// signed has the signature behind a text.
func signed(key any, text string) (string, error) {
	signature, err := sign(key, sha256.Sum256([]byte(text)))
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// sign signs as API servers do: ES256 (RFC 7518, 3.4) or RS256 (3.3), by the kind of the key.
func sign(key any, digest [sha256.Size]byte) ([]byte, error) {
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
		if err != nil {
			return nil, err
		}
		half := (key.Params().BitSize + 7) / 8
		return append(r.FillBytes(make([]byte, half)), s.FillBytes(make([]byte, half))...), nil
	case *rsa.PrivateKey:
		return rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	}
	return nil, fmt.Errorf("expected an ECDSA or an RSA key, got %T", key)
}

// dated are claims whose times are earlier.
func dated(payload string, earlier time.Duration) (string, error) {
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return "", fmt.Errorf("claims: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	claims := map[string]any{}
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

package plugin

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/kmsharness/kmsharness/conformance"
)

func secrecy() []Check {
	return []Check{
		{Check: conformance.Check{
			ID: "KMS2-SECRECY-LOG-PLAINTEXT", Profile: conformance.Extended,
			Title:       "the log has no plaintext",
			Rule:        "The log of the plugin contains no plaintext that was sent to it, raw, in hexadecimal or in base64.",
			Source:      sourceKEP + ": the plaintext is the data encryption seed of kube-apiserver",
			Consequence: "Everyone who can read the log can decrypt the stored objects.",
			Needs:       []conformance.Capability{Log},
		}, After: []string{RoundTrip}, Run: logPlaintext},
		{Check: conformance.Check{
			ID: "KMS2-SECRECY-LOG-CREDENTIALS", Profile: conformance.Extended,
			Title:       "the log has no credentials",
			Rule:        "The log of the plugin contains no private key, token, PIN or URL with a password.",
			Source:      sourceKEP + ": the plugin's credentials give access to the remote KEK; CWE-532: sensitive information in a log file",
			Consequence: "Everyone who can read the log can use the KMS in the plugin's name.",
			Needs:       []conformance.Capability{Log},
		}, After: []string{StatusAnswers, "KMS2-SECRECY-LOG-PLAINTEXT"}, Run: logCredentials},
		{Check: conformance.Check{
			ID: "KMS2-SECRECY-ERROR-PLAINTEXT", Profile: conformance.Extended,
			Title:       "error texts have no plaintext",
			Rule:        "No text of an error or of healthz contains a plaintext that was sent.",
			Source:      sourceKEP + ": the plaintext is the data encryption seed of kube-apiserver, which logs the errors of plugins and shows them in /readyz",
			Consequence: "The data encryption seed is in the log and in the health endpoints of kube-apiserver.",
		}, After: []string{RoundTrip}, Run: errorPlaintext},
		{Check: conformance.Check{
			ID: "KMS2-SECRECY-ERROR-CREDENTIALS", Profile: conformance.Extended,
			Title:       "error texts have no credentials",
			Rule:        "No text of an error or of healthz contains a private key, a token, a PIN or a URL with a password.",
			Source:      sourceConfig + ": kube-apiserver logs the errors of plugins and shows them in /readyz; a health reporter publishes them in a condition",
			Consequence: "The plugin's credentials are in the log and in the health endpoints of kube-apiserver.",
		}, After: []string{StatusAnswers}, Run: errorCredentials},
		{Check: conformance.Check{
			ID: "KMS2-SECRECY-KEY-ID", Profile: conformance.Extended,
			Title:       "key_id is no secret",
			Rule:        "The key_id contains no credentials: it is public, stored with each object and shown in metrics as a hash.",
			Source:      sourceProto + ": StatusResponse.key_id must not include secrets, it is stored in clear text",
			Consequence: "The credentials are in etcd in clear text, in each backup, and in the conditions of health reporters.",
		}, After: []string{"KMS2-STATUS-KEY-ID-PRESENT"}, Run: keyIDCredentials},
	}
}

// credential is a pattern of texts that give access to something.
type credential struct {
	name    string
	pattern *regexp.Regexp
}

var credentials = []credential{
	{"a URL with a password", regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://[^/\s:@]+:[^/\s:@]+@`)},
	{"a private key in PEM", regexp.MustCompile(`-----BEGIN ([A-Z]+ )*PRIVATE KEY-----`)},
	{"a secret key of age", regexp.MustCompile(`\bAGE-SECRET-KEY-(PQ-)?1[0-9A-Z]{20,}`)},
	{"a bearer token", regexp.MustCompile(`(?i)\bbearer [A-Za-z0-9._~+/=-]{16,}`)},
	{"a JSON web token", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.`)},
	{"a token of Vault or OpenBao", regexp.MustCompile(`\b(hv[sbr]|s)\.[A-Za-z0-9_-]{24,}`)},
	{"an access key of AWS", regexp.MustCompile(`\b(AKIA|ASIA)[A-Z0-9]{16}\b`)},
	{"a PIN in a PKCS#11 URI", regexp.MustCompile(`\bpkcs11:\S*[?&]pin-value=[^\s&]+`)},
	{"a secret in a query", regexp.MustCompile(`(?i)[?&](access_token|client_secret|password|sig)=[^\s&]{6,}`)},
}

// findCredential returns the name of the first pattern that a text matches; empty if there is none.
func findCredential(text []byte) string {
	for _, c := range credentials {
		if c.pattern.Match(text) {
			return c.name
		}
	}
	return ""
}

// findPlaintext returns in which form a text contains a plaintext; empty if it does not.
func findPlaintext(text []byte, plaintexts [][]byte) string {
	for _, p := range plaintexts {
		for _, f := range []struct{ name, text string }{
			{"as it was sent", string(p)},
			{"in hexadecimal", hex.EncodeToString(p)},
			{"in hexadecimal", strings.ToUpper(hex.EncodeToString(p))},
			{"in base64", strings.TrimRight(base64.StdEncoding.EncodeToString(p), "=")},
			{"in base64", strings.TrimRight(base64.URLEncoding.EncodeToString(p), "=")},
			{"as a list of bytes", strings.Trim(fmt.Sprint(p), "[]")},
			{"quoted", strings.Trim(fmt.Sprintf("%q", p), `"`)},
		} {
			if bytes.Contains(text, []byte(f.text)) {
				return f.name
			}
		}
	}
	return ""
}

// distinct keeps the plaintexts that no text contains by accident: the checks also send constant ones.
func distinct(plaintexts [][]byte) (kept [][]byte) {
	for _, p := range plaintexts {
		different := map[byte]bool{}
		for _, b := range p {
			different[b] = true
		}
		if len(different) >= SeedBytes/2 && len(kept) < maxSearched {
			kept = append(kept, p)
		}
	}
	return kept
}

// maxSearched bounds the plaintexts that are searched for: each costs a pass over the log.
const maxSearched = 64

// dumpLine is a line as hexdump -C and Go's hex.Dumper write it.
var dumpLine = regexp.MustCompile(`(?m)^[0-9a-f]{8}  ((?:[0-9a-f]{2} {1,2}){1,16}) *\|.*\|\r?$`)

// readable is a log in which secrets are searched for: its text, and what its hexadecimal dumps show.
func readable(log []byte) []byte {
	dumped := []byte("\n")
	for _, m := range dumpLine.FindAllSubmatch(log, -1) {
		if b, err := hex.DecodeString(strings.ReplaceAll(string(m[1]), " ", "")); err == nil {
			dumped = append(dumped, b...)
		}
	}
	return append(log, dumped...)
}

func logPlaintext(ctx context.Context, p *Plugin) error {
	var own [][]byte // so that there is something to find, whatever checks ran before
	for range 3 {
		if sealed, err := p.Seal(ctx); err == nil {
			_ = p.Unseal(ctx, sealed, "Decrypt")
			own = append(own, sealed.Plaintext)
		}
	}
	log, err := p.ReadLog()
	if err != nil {
		return err
	}
	plaintexts, _ := p.traffic.seen()
	if form := findPlaintext(readable(log), distinct(append(own, plaintexts...))); form != "" {
		return found("read the log after Encrypt and Decrypt", "it contains a plaintext "+form, "no plaintext")
	}
	return nil
}

func logCredentials(_ context.Context, p *Plugin) error {
	log, err := p.ReadLog()
	if err != nil {
		return err
	}
	if name := findCredential(readable(log)); name != "" {
		return found("read the log", "it contains "+name, "no credentials")
	}
	return nil
}

func errorPlaintext(ctx context.Context, p *Plugin) error {
	// Errors of Encrypt and Decrypt, in case no other check provoked any.
	own := [][]byte{p.Bytes(2 << 20)} // searched for first: after many other checks not all plaintexts are
	_, _ = p.Encrypt(ctx, own[0])
	if sealed, err := p.Seal(ctx); err == nil {
		sealed.Ciphertext = sealed.Ciphertext[:len(sealed.Ciphertext)/2]
		_, _ = p.Decrypt(ctx, sealed.EncryptResponse)
		own = append(own, sealed.Plaintext)
	}
	plaintexts, texts := p.traffic.seen()
	plaintexts = append(own, plaintexts...)
	for i := range plaintexts {
		plaintexts[i] = plaintexts[i][:SeedBytes] // an error text may have the beginning of a long one
	}
	if form := findPlaintext([]byte(strings.Join(texts, "\n")), distinct(plaintexts)); form != "" {
		return found("calls that failed", "an error text contains a plaintext "+form, "no plaintext")
	}
	return nil
}

func errorCredentials(ctx context.Context, p *Plugin) error {
	_, _ = p.Encrypt(ctx, p.Bytes(2<<20)) // in case no other check provoked an error
	_, texts := p.traffic.seen()
	for _, text := range texts {
		if name := findCredential([]byte(text)); name != "" {
			return found("calls that failed", "an error text contains "+name, "no credentials")
		}
	}
	return nil
}

func keyIDCredentials(ctx context.Context, p *Plugin) error {
	resp, err := p.Status(ctx)
	if err != nil {
		return found("Status", err, "a response")
	}
	if name := findCredential([]byte(resp.KeyId)); name != "" {
		return found("Status", "the key_id contains "+name, "no credentials")
	}
	return nil
}

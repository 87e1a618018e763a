package plugin

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	kmsapi "k8s.io/kms/apis/v2"
)

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
	log := need(p.ReadLog())
	plaintexts, _ := p.traffic.seen()
	if form := findPlaintext(readable(log), distinct(append(own, plaintexts...))); form != "" {
		return found("read the log after Encrypt and Decrypt", "it contains a plaintext "+form, "no plaintext")
	}
	return nil
}

func logCredentials(_ context.Context, p *Plugin) error {
	log := need(p.ReadLog())
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
	resp := need(p.answer(ctx, "Status"))
	for _, d := range decodings([]byte(resp.KeyId)) {
		if name := findCredential(d.data); name != "" {
			return found("Status", "the key_id contains "+name+d.inside, "no credentials")
		}
	}
	return nil
}

// address is a URL, a host with a port, or an IPv4 address.
var address = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://[\w\[\]@.:/-]+|\b[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)+:[0-9]{2,5}\b|\blocalhost:[0-9]{2,5}\b|\b(([0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])\.){3}([0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])\b`)

func keyIDHasNoAddress(_ context.Context, p *Plugin, resp *kmsapi.StatusResponse) error {
	for _, d := range decodings([]byte(resp.KeyId)) {
		at := string(address.Find(d.data))
		for _, known := range p.addresses {
			if strings.Contains(string(d.data), known) {
				at = known
			}
		}
		if at != "" {
			return found("Status", fmt.Sprintf("the key_id contains an address of the KMS%s: %s", d.inside, quote(at)), "an identifier of the key alone")
		}
	}
	return nil
}

// revealBytes is how much of a plaintext is searched for: so much does not occur by chance. It is a multiple of three, so that the base64 of the
// plaintext contains that of the part.
const revealBytes = 15

// reveals returns how data shows a part of a seed, and "" if it does not.
func reveals(data, plaintext []byte) string {
	if len(plaintext) < 2*revealBytes {
		return ""
	}
	parts := [][]byte{plaintext[:revealBytes], plaintext[revealBytes : 2*revealBytes]}
	for _, d := range decodings(data) {
		if how := findPlaintext(d.data, parts); how != "" {
			return how + d.inside
		}
	}
	return ""
}

// decoded is data after an encoding was removed.
type decoded struct {
	inside string
	data   []byte
}

// decodings are data as it is and, if it is text in base64 or hexadecimal digits, what the text stands for. A prefix that ends in a colon, as in
// vault:v1:TEXT, is not part of the text.
func decodings(data []byte) []decoded {
	list := []decoded{{"", data}}
	text := string(data[bytes.LastIndexByte(data, ':')+1:])
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if b, err := e.DecodeString(text); err == nil && len(b) > 0 {
			list = append(list, decoded{", inside base64", b})
			break
		}
	}
	if b, err := hex.DecodeString(text); err == nil && len(b) > 0 {
		list = append(list, decoded{", inside hexadecimal digits", b})
	}
	return list
}

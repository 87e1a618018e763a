package altsvc

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

const (
	// defaultLifetime is how long an alternative without "ma" is fresh (RFC 7838, section 3.1).
	defaultLifetime = 24 * time.Hour
	// maxAlternatives bounds how many alternatives of a field are read. The first ones are those that the server prefers.
	maxAlternatives = 64
	// maxDeltaSeconds is the value to use for larger numbers of seconds (RFC 7234, section 1.2.1).
	maxDeltaSeconds = math.MaxInt32
)

// Alternative is one alternative service of an Alt-Svc field.
type Alternative struct {
	// Protocol is the ALPN protocol name, for example "h2".
	Protocol string
	// Host is an IP address without brackets, a DNS name in lower case, or empty for the origin's host.
	Host string
	Port uint16
	// MaxAge is how long the alternative is fresh after the response was generated.
	MaxAge time.Duration
	// Persist reports whether the alternative remains valid when the client's network changes.
	Persist bool
}

// Field is the content of the Alt-Svc fields of one response.
type Field struct {
	// Clear invalidates all alternatives, including those of the same response.
	Clear bool
	// Alternatives are in the server's order of preference.
	Alternatives []Alternative
}

// Parse reads the values of the Alt-Svc fields of one response (RFC 7838, section 3). Several values are one list. A value
// that does not have the form of the RFC is an error. An alternative of that form whose protocol name, host or port is not
// valid is left out.
func Parse(values ...string) (Field, error) {
	p := parser{text: strings.Join(values, ",")}
	field, err := p.field()
	if err != nil {
		return Field{}, fmt.Errorf("parse Alt-Svc %.200q: byte %d: %w", p.text, p.at, err)
	}
	return field, nil
}

// String returns the value of an Alt-Svc field. A field without content is empty.
func (f Field) String() string {
	if f.Clear {
		return "clear"
	}
	members := make([]string, len(f.Alternatives))
	for i, a := range f.Alternatives {
		members[i] = a.String()
	}
	return strings.Join(members, ", ")
}

// String returns the alternative as a member of an Alt-Svc field.
func (a Alternative) String() string {
	host := a.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	text := fmt.Sprintf(`%s="%s:%d"`, encodeProtocol(a.Protocol), host, a.Port)
	if a.MaxAge != defaultLifetime {
		text += fmt.Sprintf("; ma=%d", a.MaxAge/time.Second)
	}
	if a.Persist {
		text += "; persist=1"
	}
	return text
}

// encodeProtocol is the inverse of decodeProtocol.
func encodeProtocol(name string) string {
	var id strings.Builder
	for i := 0; i < len(name); i++ {
		if c := name[i]; c == '%' || !isTokenCharacter(c) {
			fmt.Fprintf(&id, "%%%02X", c)
		} else {
			id.WriteByte(c)
		}
	}
	return id.String()
}

var (
	errEmpty        = errors.New(`expected an alternative or "clear"`)
	errToken        = errors.New("expected a token")
	errEquals       = errors.New(`expected "="`)
	errQuoted       = errors.New("expected a quoted string")
	errUnterminated = errors.New("the quoted string does not end")
	errCharacter    = errors.New("a character that a quoted string must not have")
	errSeparator    = errors.New(`expected ",", ";" or the end`)
)

// parser reads text from left to right. at is the next byte.
type parser struct {
	text string
	at   int
}

func (p *parser) field() (Field, error) {
	var field Field
	members := 0
	const separators = ", \t" // a list may have empty members (RFC 7230, section 7)
	for p.skip(separators); p.at < len(p.text); p.skip(separators) {
		members++
		name, err := p.token()
		if err != nil {
			return field, err
		}
		if name == "clear" && p.memberEnds() {
			field.Clear = true
			continue
		}
		alternative, ok, err := p.alternative(name)
		if err != nil {
			return field, err
		}
		if ok && len(field.Alternatives) < maxAlternatives {
			field.Alternatives = append(field.Alternatives, alternative)
		}
	}
	if members == 0 {
		return field, errEmpty
	}
	if field.Clear {
		field.Alternatives = nil
	}
	return field, nil
}

// alternative reads what follows the protocol-id. ok is false for an alternative of the right form that has no meaning.
func (p *parser) alternative(id string) (a Alternative, ok bool, err error) {
	if err := p.expect('='); err != nil {
		return a, false, err
	}
	authority, err := p.quoted()
	if err != nil {
		return a, false, err
	}
	a.MaxAge = defaultLifetime
	seen := map[string]bool{}
	for !p.memberEnds() {
		p.skip(" \t")
		if p.peek() != ';' {
			return a, false, errSeparator
		}
		p.at++
		p.skip(" \t")
		name, value, err := p.parameter()
		if err != nil {
			return a, false, err
		}
		if !seen[name] { // of a repeated parameter the first counts
			seen[name] = true
			a.set(name, value)
		}
	}
	protocol, known := decodeProtocol(id)
	host, port, valid := splitAuthority(authority)
	a.Protocol, a.Host, a.Port = protocol, host, port
	return a, known && valid, nil
}

// set applies a parameter. Unknown parameters and unknown values have no effect.
func (a *Alternative) set(name, value string) {
	switch name {
	case "ma":
		if seconds, ok := deltaSeconds(value); ok {
			a.MaxAge = seconds
		}
	case "persist":
		a.Persist = value == "1"
	}
}

func (p *parser) parameter() (name, value string, err error) {
	if name, err = p.token(); err != nil {
		return "", "", err
	}
	if err = p.expect('='); err != nil {
		return "", "", err
	}
	if p.peek() == '"' {
		value, err = p.quoted()
	} else {
		value, err = p.token()
	}
	return name, value, err
}

func (p *parser) token() (string, error) {
	start := p.at
	for p.at < len(p.text) && isTokenCharacter(p.text[p.at]) {
		p.at++
	}
	if start == p.at {
		return "", errToken
	}
	return p.text[start:p.at], nil
}

// quoted reads a quoted-string of RFC 7230, section 3.2.6, and returns its content.
func (p *parser) quoted() (string, error) {
	if p.peek() != '"' {
		return "", errQuoted
	}
	p.at++
	var content strings.Builder
	for p.at < len(p.text) {
		c := p.text[p.at]
		switch {
		case c == '"':
			p.at++
			return content.String(), nil
		case c == '\\':
			p.at++
			if p.at == len(p.text) {
				return "", errUnterminated
			}
			c = p.text[p.at]
		}
		if c != '\t' && c < ' ' || c == 0x7f {
			return "", errCharacter
		}
		content.WriteByte(c)
		p.at++
	}
	return "", errUnterminated
}

// memberEnds reports whether only optional white space precedes the next comma or the end.
func (p *parser) memberEnds() bool {
	rest := strings.TrimLeft(p.text[p.at:], " \t")
	return rest == "" || rest[0] == ','
}

func (p *parser) expect(c byte) error {
	if p.peek() != c {
		return errEquals
	}
	p.at++
	return nil
}

// peek returns the next byte, or 0 at the end. No production contains the byte 0.
func (p *parser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

// skip skips characters.
func (p *parser) skip(characters string) {
	p.at = len(p.text) - len(strings.TrimLeft(p.text[p.at:], characters))
}

func isTokenCharacter(c byte) bool {
	return isAlphanumeric(c) || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// decodeProtocol decodes a protocol-id. There is exactly one way to write each name: only octets that are no token characters
// and "%" are encoded, with upper-case digits. Anything else is not ok.
func decodeProtocol(id string) (name string, ok bool) {
	var decoded strings.Builder
	for i := 0; i < len(id); i++ {
		if id[i] != '%' {
			decoded.WriteByte(id[i])
			continue
		}
		if i+2 >= len(id) {
			return "", false
		}
		digits := id[i+1 : i+3]
		octet, err := strconv.ParseUint(digits, 16, 8)
		if err != nil || digits != strings.ToUpper(digits) || octet != '%' && isTokenCharacter(byte(octet)) {
			return "", false
		}
		decoded.WriteByte(byte(octet))
		i += 2
	}
	return decoded.String(), true
}

// splitAuthority splits [ uri-host ] ":" port.
func splitAuthority(authority string) (host string, port uint16, ok bool) {
	colon := strings.LastIndexByte(authority, ':')
	if colon < 0 {
		return "", 0, false
	}
	if port, ok = parsePort(authority[colon+1:]); !ok {
		return "", 0, false
	}
	if colon == 0 {
		return "", port, true
	}
	host, ok = parseHost(authority[:colon])
	return host, port, ok
}

func parsePort(text string) (uint16, bool) {
	port, err := strconv.ParseUint(text, 10, 16)
	return uint16(port), err == nil && port != 0
}

// parseHost returns the canonical form of a uri-host, without brackets. An IPv6 zone has a meaning on one machine only, and
// internationalized names are written as A-labels (RFC 7838, section 8), so neither is valid.
func parseHost(text string) (string, bool) {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		ip, err := netip.ParseAddr(inner)
		if !ok || err != nil || !ip.Is6() || ip.Zone() != "" {
			return "", false
		}
		return ip.String(), true
	}
	if ip, err := netip.ParseAddr(text); err == nil {
		return ip.String(), ip.Is4()
	}
	if text == "" {
		return "", false
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '-' && c != '.' && c != '_' && !isAlphanumeric(c) {
			return "", false
		}
	}
	return strings.ToLower(text), true
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func deltaSeconds(text string) (time.Duration, bool) {
	if !digitsOnly(text) {
		return 0, false
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds > maxDeltaSeconds {
		seconds = maxDeltaSeconds
	}
	return time.Duration(seconds) * time.Second, true
}

func digitsOnly(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

package store

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// specRules are the CEL rules of texts in the spec of the APIServer configuration, which an administrator can break, by their text.
func specRules() map[string]func(string) bool {
	domain := matches(`^[a-z0-9]([a-z0-9\-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9\-]*[a-z0-9])?)*$`)
	digest := matches(`^[^@]*@sha256:[a-f0-9]{64}$`)
	image := matches(`^([a-zA-Z0-9-]+\.)+[a-zA-Z0-9-]+(:[0-9]{2,5})?(/[a-zA-Z0-9-_.]+)+(@|$)`)
	segments := matches(`^[a-zA-Z0-9._~/-]+$`)
	keyPath := matches(`^[a-zA-Z0-9._~-]+(/[a-zA-Z0-9._~-]+)*/keys/[a-zA-Z0-9_]([a-zA-Z0-9_.-]*[a-zA-Z0-9_])?$`)
	reserved := []string{"root", "sys", "audit", "auth", "cubbyhole", "identity"}
	dots := func(segment string) bool { return segment == "." || segment == ".." }
	return map[string]func(string) bool{
		`self.matches('^[a-z0-9]([a-z0-9\\-]*[a-z0-9])?(\\.[a-z0-9]([a-z0-9\\-]*[a-z0-9])?)*$')`:              domain,
		`(self.split('@').size() == 2 && self.split('@')[1].matches('^sha256:[a-f0-9]{64}$'))`:                digest,
		`(self.split('@')[0].matches('^([a-zA-Z0-9-]+\\.)+[a-zA-Z0-9-]+(:[0-9]{2,5})?(/[a-zA-Z0-9-_.]+)+$'))`: image,
		`isURL(self)`: aURL(func(*url.URL) bool { return true }),
		`isURL(self) && url(self).getScheme() == 'https'`:                                        aURL(func(u *url.URL) bool { return u.Scheme == "https" }),
		`isURL(self) && (url(self).getEscapedPath() == '' || url(self).getEscapedPath() == '/')`: aURL(func(u *url.URL) bool { return u.EscapedPath() == "" || u.EscapedPath() == "/" }),
		`isURL(self) && url(self).getQuery() == {}`:                                              aURL(func(u *url.URL) bool { return len(u.Query()) == 0 }),
		`self.find('#(.+)$') == ''`:                                                              without(`#(.+)$`),
		`self.find('@') == ''`:                                                                   without(`@`),
		`!self.endsWith('/')`:                                                                    func(v string) bool { return !strings.HasSuffix(v, "/") },
		`!self.startsWith('/')`:                                                                  func(v string) bool { return !strings.HasPrefix(v, "/") },
		`!self.contains(' ')`:                                                                    without(` `),
		`!self.contains('//')`:                                                                   without(`//`),
		`!(self in ['root', 'sys', 'audit', 'auth', 'cubbyhole', 'identity'])`:                   func(v string) bool { return !slices.Contains(reserved, v) },
		`self.matches('^[a-zA-Z0-9._~/-]+$')`:                                                    segments,
		`self.split('/').filter(s, s == '.' || s == '..').size() == 0`:                           func(v string) bool { return !slices.ContainsFunc(strings.Split(v, "/"), dots) },
		`self.matches('^[a-zA-Z0-9._~-]+(/[a-zA-Z0-9._~-]+)*/keys/[a-zA-Z0-9_]([a-zA-Z0-9_.-]*[a-zA-Z0-9_])?$')`: keyPath,
	}
}

// matches is a rule that a text has a form. Most are never asked, so the form is read when one is.
func matches(form string) func(string) bool {
	read := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(form) })
	return func(v string) bool { return read().MatchString(v) }
}

// aURL is a rule about one; what is none breaks it.
func aURL(holds func(*url.URL) bool) func(string) bool {
	return func(v string) bool {
		u, err := url.ParseRequestURI(v)
		return err == nil && holds(u)
	}
}

// without is a rule that a form does not occur.
func without(form string) func(string) bool {
	found := matches(form)
	return func(v string) bool { return !found(v) }
}

package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Forms of values. The limits of Vault are those of the CRD.
var (
	vaultKeyPath = regexp.MustCompile(`^[a-zA-Z0-9._~-]+(/[a-zA-Z0-9._~-]+)*/keys/[a-zA-Z0-9_]([a-zA-Z0-9_.-]*[a-zA-Z0-9_])?$`)
	image        = regexp.MustCompile(`^([a-zA-Z0-9-]+\.)+[a-zA-Z0-9-]+(:[0-9]{2,5})?(/[a-zA-Z0-9-_.]+)+@sha256:[a-f0-9]{64}$`)
	subdomain    = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
	awsARN       = regexp.MustCompile(`^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$`)
	region       = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-[0-9]+$`)
	azureName    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{1,22}[A-Za-z0-9]$`)
	azureKey     = regexp.MustCompile(`^[A-Za-z0-9-]{1,127}$`)
	azureVersion = regexp.MustCompile(`^[a-f0-9]{32}$`)
	gcpKey       = regexp.MustCompile(`^projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+$`)
)

func (f Field) validate(value string) error {
	switch {
	case value == "" && f.Required:
		return errors.New("expected a value, it is required")
	case value == "" || f.Valid == nil:
		return nil
	}
	return f.Valid(value)
}

func matches(form *regexp.Regexp, what string) func(string) error {
	return func(value string) error {
		if !form.MatchString(value) {
			return fmt.Errorf("%q: expected %s", value, what)
		}
		return nil
	}
}

func oneOf(values ...string) func(string) error {
	return func(value string) error {
		if !slices.Contains(values, value) {
			return fmt.Errorf("%q: expected %s", value, strings.Join(values, " or "))
		}
		return nil
	}
}

func digestImage(value string) error {
	return matches(image, "HOST/NAME@sha256:DIGEST, with a dot in the host and no tag")(value)
}

func objectName(value string) error {
	if len(value) > 253 || !subdomain.MatchString(value) {
		return fmt.Errorf("%q: expected a name of lower-case letters, digits, dashes and dots, at most 253", value)
	}
	return nil
}

func absolute(value string) error {
	if !filepath.IsAbs(value) {
		return fmt.Errorf("%q: expected an absolute path", value)
	}
	return nil
}

func httpsOrigin(value string) error {
	u, err := url.Parse(value)
	plain := err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
	if !plain || strings.Trim(u.Path, "/") != "" {
		return fmt.Errorf("%q: expected https://HOST[:PORT] and nothing else", value)
	}
	return nil
}

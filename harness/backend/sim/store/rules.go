package store

import utilvalidation "k8s.io/apimachinery/pkg/util/validation"

// rules are the CEL rules of the CRDs that a reporter can break, by their text. All others are about fields that nobody
// writes here; a test names them.
func rules() map[string]func(string) bool {
	return map[string]func(string) bool{
		"!format.dns1123Subdomain().validate(self).hasValue()": func(v string) bool { return len(utilvalidation.IsDNS1123Subdomain(v)) == 0 },
	}
}

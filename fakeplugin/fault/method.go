package fault

import (
	"fmt"
	"slices"
	"strings"
)

// Method is a method of the KMS v2 service.
type Method string

const (
	Status  Method = "Status"
	Encrypt Method = "Encrypt"
	Decrypt Method = "Decrypt"
)

func Methods() []Method { return []Method{Status, Encrypt, Decrypt} }

// ParseMethods reads "all", one method or several joined with "+", in any case.
func ParseMethods(s string) ([]Method, error) {
	if strings.EqualFold(s, "all") {
		return Methods(), nil
	}
	var methods []Method
	for _, name := range strings.Split(s, "+") {
		i := slices.IndexFunc(Methods(), func(m Method) bool { return strings.EqualFold(string(m), strings.TrimSpace(name)) })
		if i < 0 {
			return nil, fmt.Errorf("method %.64q: expected Status, Encrypt, Decrypt, several joined with +, or all", name)
		}
		if m := Methods()[i]; !slices.Contains(methods, m) {
			methods = append(methods, m)
		}
	}
	return methods, nil
}

func formatMethods(methods []Method) string {
	if len(methods) == len(Methods()) {
		return "all"
	}
	names := make([]string, len(methods))
	for i, m := range methods {
		names[i] = string(m)
	}
	return strings.Join(names, "+")
}

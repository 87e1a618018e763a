package check

import (
	"fmt"
	"strings"

	"github.com/kmsharness/kmsharness/harness/history"
)

// FaultKind names the kind of fault that an action is, from what the history says of it: "plugin hang", "link reporter-apiserver
// cut", "etcd kill". It is empty for an action that is none: one that ends a fault, writes data, or asks for something.
func FaultKind(verb, target string, params map[string]any) string {
	param := func(name string) string {
		if x, ok := params[name]; ok {
			return fmt.Sprint(x)
		}
		return ""
	}
	switch verb {
	case "inject":
		return "plugin " + param("fault")
	case "kill", "stop", "pause", "silence":
		return role(target) + " " + verb
	case "restart":
		if with := param("with"); with != "" {
			return role(target) + " crash"
		}
		return role(target) + " restart"
	case "condition":
		if param("delete") == "" {
			return "foreign condition"
		}
		return ""
	case "entries":
		if param("count") != "0" {
			return "foreign entries"
		}
		return ""
	case "refuse":
		return refusalKind(target, param("mode"))
	case "release", "start", "resume", "data", "attempt", "apiserver":
		return ""
	}
	return otherKind(verb, target, param)
}

// refusalKind names whose requests are refused, and how: "refuse reporter forbidden".
func refusalKind(target, mode string) string {
	if ended(mode) {
		return ""
	}
	who := "all"
	for _, role := range []string{history.RoleReporter, history.RoleAggregator} {
		if strings.Contains(target, role) {
			who = role
		}
	}
	return "refuse " + who + " " + mode
}

func otherKind(verb, target string, param func(string) string) string {
	parts := []string{verb}
	if ends := strings.Fields(target); verb == "link" && len(ends) > 3 { // link FROM to TO NODE
		parts = append(parts, ends[1]+"-"+ends[3])
	}
	for _, name := range []string{"remove", "add", "replace"} {
		if param(name) != "" {
			parts = append(parts, name)
		}
	}
	what := param("mode") + param("op")
	if ended(what) {
		return ""
	}
	return strings.Join(append(parts, strings.Fields(what+" "+param("type"))...), " ")
}

// ended are the words that end a fault of their verb.
func ended(what string) bool {
	switch what {
	case "restore", "enable", "allow", "renew":
		return true
	}
	return false
}

// role of a target such as "process reporter/cp-1".
func role(target string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(target, "process "), "/")
	return name
}

package mutants

import (
	"encoding/json"
	"strings"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
)

// object is an object as JSON.
type object = map[string]any

// conditioned changes the one condition that a reporter applies.
func conditioned(change func(condition object)) func(*outgoing) {
	return func(o *outgoing) {
		edit(o, func(status object) {
			if list, ok := status["conditions"].([]any); ok && len(list) == 1 {
				if c, ok := list[0].(object); ok {
					change(c)
				}
			}
		})
	}
}

// edit changes the status in a body. What is not an object stays as it is.
func edit(o *outgoing, change func(status object)) {
	var body object
	if json.Unmarshal(o.Body, &body) != nil {
		return
	}
	if status, ok := body["status"].(object); ok {
		change(status)
		o.Body = text(body)
	}
}

// message changes the entries in a reporter's message, as objects; form writes them down.
func message(change func(entry object), form func([]any) string) func() virtual.Options {
	return sending(conditioned(func(condition object) {
		var list []any
		said, _ := condition["message"].(string)
		if json.Unmarshal([]byte(said), &list) != nil {
			return
		}
		condition["message"] = form(each(change)(list))
	}))
}

// text is JSON. The values come out of JSON, so there is nothing that cannot be written.
func text(value any) []byte {
	b, _ := json.Marshal(value)
	return b
}

// inOrder writes entries in the order of the contract.
func inOrder(list []any) string {
	var items []string
	for _, item := range list {
		e, _ := item.(object)
		var fields []string
		for _, k := range []string{"keyID", "kekID", "status", "lastChecked", "detail"} {
			if v, ok := e[k]; ok {
				fields = append(fields, string(text(k))+":"+string(text(v)))
			}
		}
		items = append(items, "{"+strings.Join(fields, ",")+"}")
	}
	return "[" + strings.Join(items, ",") + "]"
}

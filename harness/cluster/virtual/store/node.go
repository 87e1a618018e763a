package store

import (
	"encoding/json"
	"fmt"
	"regexp"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// node is a schema, prepared for checking many values.
type node struct {
	kind                 string // the JSON type; empty for any
	fields               map[string]*node
	values               *node // of a map
	items                *node
	keys                 []string // of a list map
	required             []string
	minProperties        *int64
	minItems, maxItems   *int64
	minLength, maxLength *int64
	minimum, maximum     *float64
	pattern              *regexp.Regexp
	format               string // empty when it is not checked
	enum                 []string
	rules                []rule
	standard             any // the default; nil for none
	list                 int // for a list map that is indexed: its place in Type.lists, from 1
	nullable             bool
	open                 bool // it may have fields that are not declared
	leads                bool // there is such a list below, through fields alone
}

type rule struct {
	message string
	holds   func(string) bool
}

func newNode(s *apiextensions.JSONSchemaProps) (*node, error) {
	n := &node{
		kind: s.Type, required: s.Required, minProperties: s.MinProperties, minItems: s.MinItems, maxItems: s.MaxItems,
		minLength: s.MinLength, maxLength: s.MaxLength, minimum: s.Minimum, maximum: s.Maximum, keys: s.XListMapKeys,
	}
	if s.XIntOrString {
		n.kind = ""
	}
	n.nullable = s.Nullable
	n.open = s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields
	if strfmt.Default.ContainsName(s.Format) {
		n.format = s.Format
	}
	for _, r := range s.XValidations {
		if holds := modelled(r.Rule); holds != nil {
			n.rules = append(n.rules, rule{r.Message, holds})
		}
	}
	if err := n.texts(s); err != nil {
		return nil, err
	}
	return n, n.children(s)
}

func (n *node) texts(s *apiextensions.JSONSchemaProps) (err error) {
	for _, e := range s.Enum {
		var text string
		if err := json.Unmarshal(e.Raw, &text); err != nil {
			text = string(e.Raw)
		}
		n.enum = append(n.enum, text)
	}
	if s.Default != nil {
		var v any
		if err := utiljson.Unmarshal(s.Default.Raw, &v); err != nil {
			return fmt.Errorf("default %s: %w", s.Default.Raw, err)
		}
		if n.standard, err = clone(v); err != nil {
			return fmt.Errorf("default %s: %w", s.Default.Raw, err)
		}
	}
	if s.Pattern != "" {
		if n.pattern, err = regexp.Compile(s.Pattern); err != nil {
			return fmt.Errorf("pattern %s: %w", s.Pattern, err)
		}
	}
	return nil
}

func (n *node) children(s *apiextensions.JSONSchemaProps) (err error) {
	n.fields = make(map[string]*node, len(s.Properties))
	for name, p := range s.Properties {
		if n.fields[name], err = newNode(&p); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		if n.values, err = newNode(s.AdditionalProperties.Schema); err != nil {
			return err
		}
	}
	if s.Items != nil && s.Items.Schema != nil {
		n.items, err = newNode(s.Items.Schema)
	}
	return err
}

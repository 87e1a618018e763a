package scenario

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kmsharness/kmsharness/internal/suggest"
)

// checkStep finds the verb of a step and checks the fields that go with it.
func checkStep(c *checker, n *yaml.Node, at place) {
	if n.Kind != yaml.MappingNode {
		c.add(n, at, "a step is %s, expected one such as wait: 2I", describe(n))
		return
	}
	var found []*yaml.Node
	for i := 0; i < len(n.Content); i += 2 {
		if c.step(n.Content[i].Value) != nil {
			found = append(found, n.Content[i])
		}
	}
	switch len(found) {
	case 0:
		c.noVerb(n, at)
	case 1:
		c.mapping(n, c.step(found[0].Value), at)
	default:
		c.add(found[1], at, "a second verb %q in the step that has %q, expected one verb per step", found[1].Value, found[0].Value)
	}
}

// noVerb blames the first field that is not a modifier: most likely it was meant to be the verb.
func (c *checker) noVerb(n *yaml.Node, at place) {
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		if !slices.Contains([]string{keyAt, keyAfter, keyWithin, keyFor}, key.Value) {
			c.add(key, at, "unknown verb %s, expected %s%s", quote(key.Value), oneOf(keywords()), suggest.DidYouMean(key.Value, keywords()))
			return
		}
	}
	c.add(n, at, "a step without a verb, expected %s", oneOf(keywords()))
}

// step is the shape of a step with a verb; nil if the word is none. A file has many steps with few verbs.
func (c *checker) step(keyword string) *shape {
	if s := c.steps[keyword]; s != nil {
		return s
	}
	if !slices.Contains(keywords(), keyword) {
		return nil
	}
	if c.steps == nil {
		c.steps = map[string]*shape{}
	}
	c.steps[keyword] = mapping("a step with "+keyword, stepFields(keyword)...)
	return c.steps[keyword]
}

// boundOf is the field that must stand beside an expectation.
func boundOf(keyword string) string {
	switch keyword {
	case keyExpect:
		return keyWithin
	case keyHolds, keyNever:
		return keyFor
	}
	return ""
}

// checkInstance accepts 1 and "1" alike: nobody should have to know that YAML tells them apart here.
func checkInstance(c *checker, n *yaml.Node, at place) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" && n.ShortTag() != "!!str" {
		c.add(n, at, "is %s, expected %s", describe(n), oneOf(instances()))
	}
}

// checkLag accepts one duration for all nodes, or one per node.
func checkLag(c *checker, n *yaml.Node, at place) {
	if n.Kind != yaml.MappingNode {
		c.check(n, scalar(kindTime), at)
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		c.check(n.Content[i+1], scalar(kindTime), at.at(n.Content[i].Value))
	}
}

func instances() []string { return strings.Fields("1 2 3 leader standby") }

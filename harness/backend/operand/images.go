package operand

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/operator/config"
)

// missing is the registry of images that do not exist: no name below it ever resolves (RFC 2606), so that a real kubelet cannot pull them either.
const missing = "missing.invalid"

// missingOn returns the node on which an image does not exist, the empty string for all of them, and reports whether there is one.
func missingOn(image string) (node string, is bool) {
	host, _, _ := strings.Cut(image, "/")
	if host == missing {
		return "", true
	}
	return strings.CutSuffix(host, "."+missing)
}

// CannotStart is why a container with an image does not run on a node, in the words of a kubelet; empty: it runs. A pre-flight check is on no node.
func CannotStart(node, image string) string {
	if on, is := missingOn(image); !is || on != "" && on != node {
		return ""
	}
	return fmt.Sprintf("ImagePullBackOff: Back-off pulling image %q", image)
}

// Unreachable reports whether nothing answers at the address of a plugin's KMS: no name below .invalid ever resolves.
func Unreachable(c config.Plugin) bool {
	address, err := url.Parse(c.Settings()["vaultAddress"])
	return err == nil && strings.HasSuffix(address.Hostname(), ".invalid")
}

// NamedImages are the images of plugins that a scenario names, sorted. The others stand for whatever image there is.
func NamedImages(s *scenario.Scenario) []string {
	var all []string
	for _, a := range s.Actions() {
		if a, ok := a.(*scenario.APIServer); ok {
			for _, section := range a.Sections {
				if image, ok := section["kmsPluginImage"].(string); ok {
					all = append(all, image)
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// NamesMissing reports whether a scenario names an image that does not exist, on some node or on all.
func NamesMissing(s *scenario.Scenario) bool {
	return slices.ContainsFunc(NamedImages(s), func(image string) bool {
		_, is := missingOn(image)
		return is
	})
}

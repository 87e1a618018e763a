package operated

import (
	"fmt"
	"slices"

	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/operator/core"
)

// Images are those with which containers of plugins do not run. The zero value has none. It is not safe for concurrent use.
type Images struct {
	faults map[imageOn]string
}

// imageOn is an image on a node; without a node everywhere.
type imageOn struct{ image, node string }

// Set puts a fault in force, or ends it.
func (i *Images) Set(a *scenario.Image) {
	on := imageOn{a.Image, a.Node}
	if on.node == scenario.NodeAll {
		on.node = ""
	}
	if !a.Lasts() {
		delete(i.faults, on)
		if on.node == "" { // of all nodes, so of each
			for other := range i.faults {
				if other.image == on.image {
					delete(i.faults, other)
				}
			}
		}
		return
	}
	if i.faults == nil {
		i.faults = map[imageOn]string{}
	}
	i.faults[on] = a.Fault
}

// Fault is the fault of an image on a node, or scenario.ImageNone. A pre-flight check is on no node.
func (i *Images) Fault(node, image string) string {
	for _, on := range []imageOn{{image, ""}, {image, node}} {
		if fault, there := i.faults[on]; there {
			return fault
		}
	}
	return scenario.ImageNone
}

// CannotStart is why a container with an image does not run on a node, in the words of a kubelet; empty: it runs. A pre-flight check is on no node.
func (i *Images) CannotStart(node, image string) string {
	switch i.Fault(node, image) {
	case scenario.ImageMissing:
		return fmt.Sprintf("ImagePullBackOff: Back-off pulling image %q: manifest unknown", image)
	case scenario.ImageCrashLoop:
		return "CrashLoopBackOff: back-off restarting failed container: exit code 1"
	case scenario.ImageArchitecture:
		return "CrashLoopBackOff: back-off restarting failed container: exec /usr/bin/kms-plugin: exec format error"
	case scenario.ImageReadOnly:
		return "CrashLoopBackOff: back-off restarting failed container: listen unix /var/run/kmsplugin: bind: read-only file system"
	}
	return ""
}

// StillWaiting are those plugins of a node that cannot run even now, with the reason. The others are for the operator to start again.
func (i *Images) StillWaiting(node string, all map[uint64]core.Waiting) map[uint64]core.Waiting {
	out := map[uint64]core.Waiting{}
	for id, w := range all {
		if w.Reason = i.CannotStart(node, w.Config.Image); w.Reason != "" {
			out[id] = w
		}
	}
	return out
}

// NamedImages are the images of plugins that a scenario names, sorted. The others stand for whatever image there is.
func NamedImages(s *scenario.Scenario) []string {
	var all []string
	for _, a := range s.Actions() {
		switch a := a.(type) {
		case *scenario.Image:
			all = append(all, a.Image)
		case *scenario.APIServer:
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

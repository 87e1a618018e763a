package scenario

import "regexp"

// VerbImage lets containers of plugins with an image not start, or start again.
const VerbImage Verb = "image"

// Faults of an image: why a container with it does not run. ImageNone ends the others.
const (
	ImageMissing      = "missing"
	ImageCrashLoop    = "crash-loop"
	ImageArchitecture = "wrong-architecture"
	ImageReadOnly     = "read-only"
	ImageNone         = "none"
)

// ImageFaults are the values of fault.
func ImageFaults() []string {
	return []string{ImageMissing, ImageCrashLoop, ImageArchitecture, ImageReadOnly, ImageNone}
}

// imageForm is what the API demands of the image of a plugin.
var imageForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.:/_-]*@sha256:[0-9a-f]{64}$`)

// Image lets containers of plugins with an image not start. Those that run are left alone.
type Image struct {
	Image, Fault string
	// Node is where; empty: on all, and in pre-flight checks, which are on no node.
	Node string
}

// Verb implements Action.
func (*Image) Verb() Verb { return VerbImage }

func (i *Image) fields() []field {
	return []field{required("image", formField(&i.Image, imageForm)).doc("of plugins, with its digest"),
		required("fault", keywordField(&i.Fault, ImageFaults()...)).doc("why a container with it does not run from its next start on; none: it runs again"),
		optional("node", nodeField(&i.Node)).doc("where; default all nodes, and pre-flight checks")}
}

// Describe implements Action.
func (i *Image) Describe() string {
	return "plugins" + ofNode(i.Node) + " with image " + i.Image + ": " + i.Fault
}

func (*Image) ofCluster() {}

func (i *Image) harm() string {
	if i.Fault == ImageNone {
		return ""
	}
	return "image-" + i.Fault
}

// Undo implements Undoable.
func (i *Image) Undo() Action {
	if !i.Lasts() {
		return nil
	}
	return &Image{Image: i.Image, Fault: ImageNone, Node: i.Node}
}

// Lasts implements Lasting.
func (i *Image) Lasts() bool { return i.Fault != ImageNone }

// EndedBy implements Lasting.
func (i *Image) EndedBy(b Action) bool {
	other, ok := b.(*Image)
	return ok && !other.Lasts() && other.Image == i.Image && Selector{Node: other.Node}.covers(Selector{Node: i.Node})
}

func (i *Image) check(v *validation, at place) {
	if !v.scenario.Topology.ByOperator() {
		v.add(at, "image without an operator that starts plugins, expected lifecycle: operator in the topology")
	}
	if !imageForm.MatchString(i.Image) {
		v.add(at.at("image"), "image is %s, expected one with a digest such as registry.example.com/kms/plugin@sha256:0123…, 64 digits", quote(i.Image))
	}
}

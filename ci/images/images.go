// Package images says which container images the project has, and what the list of those that were built says of each.
//
// What lives here: the names, users and descriptions, and the list's form. What does not: making the images
// (ci/images/archive), the command (ci/images/build), and loading them into nodes (the backend that has nodes).
package images

// Users of the images, as UID:GID. A kubelet makes the folder of a hostPath volume for root alone to write in, so a
// plugin that is to make its socket there has to be root. Its group is that of the reporter: with --socket-mode 0660
// the socket can be used by the API server, which is root, and by the reporter, which is not, and by nobody else.
const (
	nonRoot    = "65532:65532"
	pluginUser = "0:65532"
)

// Registry is the one that Kubernetes assumes for a name without one. Nothing is ever fetched from or sent to it:
// an image in a node's store is found under the full name.
const Registry = "docker.io/"

// Definition is an image that can be built.
type Definition struct {
	// Name of the archive, Repository of the image, Program in the image's root and in the folder of built programs.
	Name, Repository, Program string
	User                      string
	Description               string
	// MaxMiB is the size that its archive may have; 0: the usual one.
	MaxMiB int
}

// Definitions are the images of the programs that run in every cluster of the backend kind.
func Definitions() []Definition {
	return []Definition{
		{"plugin", "kmsharness/fake-kms-plugin", "fake-kms-plugin", pluginUser, "A KMS v2 plugin that misbehaves on command", 0},
		{"reporter", "kmsharness/kms-health-reporter", "kms-health-reporter", nonRoot,
			"Probes the KMS v2 plugins of one node and reports their health", 0},
		{"aggregator", "kmsharness/kms-health-aggregator", "kms-health-aggregator", nonRoot,
			"Rolls up the health reports of KMS v2 plugins", 0},
	}
}

// All are Definitions, and the image of the harness itself, for Jobs in clusters that it did not make.
func All() []Definition {
	return append(Definitions(),
		Definition{"kmsharness", "kmsharness/kmsharness", "kmsharness", nonRoot, "Simulates, judges histories and certifies plugins", 40},
	)
}

// SampleAPIServer is the image of Kubernetes' sample of an API server. Its program is not this project's, and takes minutes to build: so the
// image is made when a scenario needs it, and not with the others.
func SampleAPIServer() Definition {
	return Definition{"sample-apiserver", "kmsharness/sample-apiserver", "sample-apiserver", nonRoot, "An API server behind the aggregation layer", 0}
}

// DevTag is the tag that manifests use. It moves with every build; the content tag of an image does not.
const DevTag = "dev"

type Image struct {
	Name string `json:"name"`
	// Reference and Content are names of the image: with DevTag, and with a tag made of its content. Whether a node has this
	// very build is told by Content.
	Reference string `json:"reference"`
	Content   string `json:"content"`
	// Digest of the manifest and ID, the digest of the configuration.
	Digest string `json:"digest"`
	ID     string `json:"id"`
	// Archive is a file in the folder of the list, and Size its bytes.
	Archive string `json:"archive"`
	Size    int64  `json:"size"`
}

// ListFile is the name of the list in the folder of the archives.
const ListFile = "images.json"

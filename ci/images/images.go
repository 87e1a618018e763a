// Package images says which container images the project has: their names, users and descriptions.
//
// ci/images/archive makes the images, ci/images/build is the command, and the backend that has nodes loads images into them.
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

// All are Definitions, and the images of the harness itself, for Jobs in clusters that it did not make.
func All() []Definition {
	return append(Definitions(),
		Definition{"kmsharness", "kmsharness/kmsharness", "kmsharness", nonRoot, "Simulates, judges histories and certifies plugins", 40},
		Definition{"conformance", "kmsharness/kms-conformance", "kms-conformance", nonRoot, "Certifies KMS v2 plugins", 10},
	)
}

// SampleAPIServer is the image of Kubernetes' sample of an API server. Its program is not this project's, and takes minutes to build: so the
// image is made when a scenario needs it, and not with the others.
func SampleAPIServer() Definition {
	return Definition{"sample-apiserver", "kmsharness/sample-apiserver", "sample-apiserver", nonRoot, "An API server behind the aggregation layer", 0}
}

// Reference is the name that manifests use. Its tag moves with every build.
func (d Definition) Reference() string { return d.Repository + ":dev" }

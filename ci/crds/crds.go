// Package crds holds copies of the OpenShift API module's CRDs that the harness installs. They are real: a reporter
// or aggregator that passes here is validated by the same schemas as in a cluster. This project's own are in the folder own.
package crds

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:generate ./copy.sh

//go:embed *.crd.yaml own/*.crd.yaml
var files embed.FS

// Variant is a feature set of the OpenShift API.
type Variant string

const (
	// Default has no typed reports, and no KMS among the encryption types.
	Default Variant = "Default"
	// TechPreview has both. It is what the harness installs unless told otherwise.
	TechPreview Variant = "TechPreviewNoUpgrade"
	// GateOff is of WithKMS: Default as it is, without the encryption type KMS.
	GateOff Variant = "DefaultWithoutKMS"
	// VaultKMSConfig is of WithKMS: TechPreview with what is proposed, see referring.
	VaultKMSConfig Variant = "VaultKMSConfig"
)

// List is the CRDs of one variant, those that have no variants included, sorted by file name. An empty variant is
// TechPreview.
func List(v Variant) ([]*apiextensions.CustomResourceDefinition, error) {
	if v == "" {
		v = TechPreview
	}
	if v != Default && v != TechPreview {
		return nil, fmt.Errorf("CRD variant %q: expected %s or %s", v, Default, TechPreview)
	}
	names, err1 := fs.Glob(files, "*.crd.yaml")
	own, err2 := fs.Glob(files, "own/*.crd.yaml") // this project's
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("list CRDs: %w", err)
	}
	var out []*apiextensions.CustomResourceDefinition
	for _, name := range append(names, own...) {
		if !belongs(name, v) {
			continue
		}
		crd, err := load(name)
		if err != nil {
			return nil, err
		}
		out = append(out, crd)
	}
	return out, nil
}

// WithKMS is List, but with the APIServer's CRD of TechPreview, which alone has the encryption type KMS: what clusters have once KMS is in the default feature
// set and the typed reports are not.
func WithKMS(v Variant) ([]*apiextensions.CustomResourceDefinition, error) {
	if v == GateOff {
		return List(Default)
	}
	if v == VaultKMSConfig {
		list, err := List(TechPreview)
		if err != nil {
			return nil, err
		}
		return referring(list)
	}
	list, err := List(v)
	if err != nil {
		return nil, err
	}
	with, err := List(TechPreview)
	if err != nil {
		return nil, err
	}
	for i, crd := range list {
		if crd.Spec.Names.Plural != "apiservers" {
			continue
		}
		for _, other := range with {
			if other.Name == crd.Name {
				list[i] = other
			}
		}
	}
	return list, nil
}

// belongs is true for a file of the variant, and for one whose name has none.
func belongs(name string, v Variant) bool {
	base := strings.TrimSuffix(name, ".crd.yaml")
	return strings.HasSuffix(base, "-"+string(v)) ||
		!strings.HasSuffix(base, "-"+string(Default)) && !strings.HasSuffix(base, "-"+string(TechPreview))
}

func load(name string) (*apiextensions.CustomResourceDefinition, error) {
	data, err := files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read CRD: %w", err)
	}
	crd := &apiextensions.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		return nil, fmt.Errorf("parse CRD %s: %w", name, err)
	}
	return crd, nil
}

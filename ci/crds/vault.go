package crds

import (
	"errors"
	"slices"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// referring adds what is proposed for OpenShift (openshift/enhancements#2082) and is in no release: the APIServer configuration refers to a VaultKMSConfig by
// spec.encryption.kms.pluginConfig. Its spec is today's section vault; the image of the plugin is in its status, for an operator of Vault's to write.
func referring(list []*apiextensions.CustomResourceDefinition) ([]*apiextensions.CustomResourceDefinition, error) {
	i := slices.IndexFunc(list, func(crd *apiextensions.CustomResourceDefinition) bool { return crd.Spec.Names.Plural == "apiservers" })
	if i < 0 {
		return nil, errors.New("add vaultkmsconfigs: there is no CRD of apiservers, which has their settings")
	}
	const image = "kmsPluginImage"
	encryption := list[i].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["encryption"]
	kms := encryption.Properties["kms"]
	inline := kms.Properties["vault"]
	vault := *inline.DeepCopy()
	status := apiextensions.JSONSchemaProps{Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{image: vault.Properties[image]}}
	delete(vault.Properties, image)
	vault.Required = slices.DeleteFunc(vault.Required, func(name string) bool { return name == image })

	text := apiextensions.JSONSchemaProps{Type: "string"}
	kms.Properties["pluginConfig"] = apiextensions.JSONSchemaProps{Type: "object", Required: []string{"apiVersion", "resource", "name"},
		Properties: map[string]apiextensions.JSONSchemaProps{"apiVersion": text, "resource": text, "name": text}}
	kms.Required = nil
	kms.XValidations = apiextensions.ValidationRules{{Rule: "has(self.pluginConfig) ? !has(self.type) && !has(self.vault) : has(self.type) && has(self.vault)",
		Message: "expected either pluginConfig, or a type with its section"}}
	encryption.Properties["kms"] = kms

	crd := &apiextensions.CustomResourceDefinition{TypeMeta: list[i].TypeMeta, ObjectMeta: metav1.ObjectMeta{Name: "vaultkmsconfigs.kms.openshift.io"}}
	crd.Spec = apiextensions.CustomResourceDefinitionSpec{Group: "kms.openshift.io", Scope: apiextensions.ClusterScoped,
		Names: apiextensions.CustomResourceDefinitionNames{Plural: "vaultkmsconfigs", Singular: "vaultkmsconfig", Kind: "VaultKMSConfig", ListKind: "VaultKMSConfigList"},
		Versions: []apiextensions.CustomResourceDefinitionVersion{{Name: "v1alpha1", Served: true, Storage: true,
			Subresources: &apiextensions.CustomResourceSubresources{Status: &apiextensions.CustomResourceSubresourceStatus{}},
			Schema: &apiextensions.CustomResourceValidation{OpenAPIV3Schema: &apiextensions.JSONSchemaProps{Type: "object", Required: []string{"spec"},
				Properties: map[string]apiextensions.JSONSchemaProps{"apiVersion": text, "kind": text, "metadata": {Type: "object"}, "spec": vault, "status": status}}},
		}}}
	return append(list, crd), nil
}

package config

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// VaultKMSConfigs have the settings of Vault outside of the APIServer configuration, as OpenShift is about to have them
// (openshift/enhancements#2082, library-go#2486). An operator of Vault's writes the image into their status.
func VaultKMSConfigs() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "kms.openshift.io", Version: "v1alpha1", Resource: "vaultkmsconfigs"}
}

const kmsPath = "spec.encryption.kms"

// Referred is the name of the VaultKMSConfig to which spec.encryption.kms.pluginConfig of an APIServer configuration refers; empty: it refers to none.
func Referred(configuration map[string]any) (name string, err error) {
	ref, there, err := unstructured.NestedStringMap(configuration, "spec", "encryption", "kms", "pluginConfig")
	if err != nil || !there {
		return "", err
	}
	of := VaultKMSConfigs()
	if version := of.GroupVersion().String(); ref["apiVersion"] != version || ref["resource"] != of.Resource || ref["name"] == "" {
		return "", fmt.Errorf("%s.pluginConfig: %s %q of %q: expected the name of one of the %s of %s", kmsPath, ref["resource"], ref["name"], ref["apiVersion"], of.Resource, version)
	}
	return ref["name"], nil
}

// Inline is an APIServer configuration as Read expects it, with the settings of the VaultKMSConfig to which it refers. settings are nil where
// there is none of that name.
func Inline(configuration, settings map[string]any) (map[string]any, error) {
	name, err := Referred(configuration)
	if err != nil || name == "" {
		return configuration, err
	}
	at := VaultKMSConfigs().GroupResource().String() + "/" + name
	if settings == nil {
		return nil, fmt.Errorf("%s.pluginConfig: %s does not exist", kmsPath, at)
	}
	image, _, _ := unstructured.NestedString(settings, "status", ImageSetting)
	if image == "" {
		return nil, fmt.Errorf("%s: status.%s is empty: an operator of Vault's has to name the image of the plugin", at, ImageSetting)
	}
	vault, _, err := unstructured.NestedMap(settings, "spec")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	section := map[string]any{ImageSetting: image}
	maps.Copy(section, vault)
	inline := (&unstructured.Unstructured{Object: configuration}).DeepCopy().Object
	return inline, unstructured.SetNestedMap(inline, map[string]any{"type": "Vault", "vault": section}, "spec", "encryption", "kms")
}

// Refer takes Vault's settings out of an APIServer configuration, which then refers to a VaultKMSConfig of a name. The image is what belongs into the
// status of that.
func Refer(configuration map[string]any, name string) (config map[string]any, image string, err error) {
	section, _, err := unstructured.NestedMap(configuration, "spec", "encryption", "kms", "vault")
	if err != nil {
		return nil, "", fmt.Errorf("%s.vault: %w", kmsPath, err)
	}
	image, _ = section[ImageSetting].(string)
	delete(section, ImageSetting)
	of := VaultKMSConfigs()
	ref := map[string]any{"apiVersion": of.GroupVersion().String(), "resource": of.Resource, "name": name}
	if err := unstructured.SetNestedMap(configuration, map[string]any{"pluginConfig": ref}, "spec", "encryption", "kms"); err != nil {
		return nil, "", fmt.Errorf("%s: %w", kmsPath, err)
	}
	return map[string]any{"apiVersion": of.GroupVersion().String(), "kind": "VaultKMSConfig", "metadata": map[string]any{"name": name}, "spec": section}, image, nil
}

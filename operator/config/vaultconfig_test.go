package config_test

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kmsharness/kmsharness/operator/config"
)

// TestReferredSettings: what is taken out of a configuration and read in again is the configuration, and the mistakes in between are one line
// with their place.
func TestReferredSettings(t *testing.T) {
	original, err := runtime.DefaultUnstructuredConverter.ToUnstructured(vault())
	if err != nil {
		t.Fatal(err)
	}
	configuration := (&unstructured.Unstructured{Object: original}).DeepCopy().Object
	settings, image, err := config.Refer(configuration, "production")
	if err != nil || image == "" {
		t.Fatalf("image %q, %v", image, err)
	}
	if name, err := config.Referred(configuration); err != nil || name != "production" {
		t.Errorf("refers to %q, %v", name, err)
	}
	if name, err := config.Referred(original); err != nil || name != "" {
		t.Errorf("inline settings refer to %q, %v", name, err)
	}
	edit := func(of map[string]any, value any, path ...string) map[string]any {
		u := (&unstructured.Unstructured{Object: of}).DeepCopy()
		if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
			t.Fatal(err)
		}
		return u.Object
	}
	named := edit(settings, image, "status", config.ImageSetting)
	if inline, err := config.Inline(configuration, named); err != nil || !reflect.DeepEqual(inline, original) {
		t.Errorf("got %v, %v, want %v", inline, err, original)
	}
	reference := []string{"spec", "encryption", "kms", "pluginConfig"}
	for name, c := range map[string]struct {
		configuration, settings map[string]any
		want                    string
	}{
		"no object":        {configuration, nil, "vaultkmsconfigs.kms.openshift.io/production does not exist"},
		"no image yet":     {configuration, settings, "vaultkmsconfigs.kms.openshift.io/production: status.kmsPluginImage is empty"},
		"another version":  {edit(configuration, "kms.openshift.io/v2", append(reference, "apiVersion")...), named, "pluginConfig: vaultkmsconfigs \"production\" of \"kms.openshift.io/v2\""},
		"another resource": {edit(configuration, "awskmsconfigs", append(reference, "resource")...), named, "pluginConfig: awskmsconfigs"},
		"no name":          {edit(configuration, "", append(reference, "name")...), named, "expected the name of one"},
		"no reference":     {edit(configuration, "production", reference...), named, "accessor error"},
		"spec is a text":   {configuration, edit(named, "transit", "spec"), "accessor error"},
	} {
		if _, err := config.Inline(c.configuration, c.settings); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

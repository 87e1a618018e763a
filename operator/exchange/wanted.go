package exchange

import (
	"fmt"
	"maps"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
)

// Object is the name of the APIServer configuration and of the operator's CR.
const Object = "cluster"

// Credentials is the namespace of what plugins need to log in.
const Credentials = "openshift-config"

// Wanted is what the administrator asks for with an APIServer configuration, which is nil where there is none. credentials are what is in the
// namespace Credentials, by hashes of the content.
func Wanted(configuration map[string]any, o config.Options, credentials map[config.Reference]string) core.Wanted {
	var a *configv1.APIServer
	if configuration != nil {
		a = &configv1.APIServer{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(configuration, a); err != nil {
			return core.Wanted{Invalid: fmt.Sprintf("apiservers.config.openshift.io/%s: %v", Object, err)}
		}
	}
	w, err := config.Read(a, o)
	if err != nil {
		return core.Wanted{Invalid: err.Error()}
	}
	w.KMS = w.KMS.WithContent(credentials)
	return core.Wanted{Wanted: w, Missing: missing(w.KMS, credentials)}
}

// ConfigMapData is the content of a ConfigMap with credentials, in the form of a Secret's.
func ConfigMapData(m *corev1.ConfigMap) map[string][]byte {
	data := map[string][]byte{}
	maps.Copy(data, m.BinaryData)
	for name, text := range m.Data { // a name is in one of the two only
		data[name] = []byte(text)
	}
	return data
}

// missing are credentials that are not there.
func missing(p config.Plugin, credentials map[config.Reference]string) []string {
	var missing []string
	for _, r := range p.Credentials() {
		if _, there := credentials[r]; !there {
			missing = append(missing, r.String())
		}
	}
	slices.Sort(missing)
	return missing
}

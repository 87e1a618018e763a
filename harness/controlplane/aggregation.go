package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// frontProxy is the name by which aggregated API servers know a kube-apiserver that passes requests on.
const frontProxy = "kmsharness-front-proxy"

// aggregation is what kube-apiservers need to pass requests on: an authority of their own, because whoever has a certificate of it is
// believed whatever user it names.
type aggregation struct {
	authority string // file
	cert, key string // files
}

func newAggregation(dir string) (*aggregation, error) {
	p, err := newPKI(dir)
	if err != nil {
		return nil, fmt.Errorf("make the certificates of the aggregation layer: %w", err)
	}
	id, err := p.client(frontProxy, nil)
	if err != nil {
		return nil, err
	}
	a := &aggregation{authority: p.caFile(), cert: filepath.Join(dir, "proxy.crt"), key: filepath.Join(dir, "proxy.key")}
	return a, errors.Join(os.WriteFile(a.cert, id.cert, 0o600), os.WriteFile(a.key, id.key, 0o600))
}

// args are those of a kube-apiserver; of no aggregation there are none.
func (a *aggregation) args() []string {
	if a == nil {
		return nil
	}
	return []string{
		"--requestheader-client-ca-file=" + a.authority,
		"--requestheader-allowed-names=" + frontProxy,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + a.cert,
		"--proxy-client-key-file=" + a.key,
	}
}

package controlplane

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// The administrator of a control plane; RBAC does not apply to this group.
const (
	adminUser  = "kmsharness-admin"
	adminGroup = "system:masters"
)

// RESTConfig is a client configuration with a certificate for user and groups. server is a URL of an API server, a link or
// a load balancer on 127.0.0.1. The client is not rate-limited.
func (cp *ControlPlane) RESTConfig(user string, groups []string, server string) (*rest.Config, error) {
	id, err := cp.pki.client(user, groups)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:            server,
		TLSClientConfig: rest.TLSClientConfig{CAData: cp.pki.pem, CertData: id.cert, KeyData: id.key},
		QPS:             -1,
		UserAgent:       "kmsharness",
	}, nil
}

// AdminConfig is RESTConfig for a user who may do everything.
func (cp *ControlPlane) AdminConfig(server string) (*rest.Config, error) {
	return cp.RESTConfig(adminUser, []string{adminGroup}, server)
}

// Kubeconfig is a kubeconfig file with a certificate for user and groups.
func (cp *ControlPlane) Kubeconfig(user string, groups []string, server string) ([]byte, error) {
	id, err := cp.pki.client(user, groups)
	if err != nil {
		return nil, err
	}
	config := api.NewConfig()
	config.Clusters["kmsharness"] = &api.Cluster{Server: server, CertificateAuthorityData: cp.pki.pem}
	config.AuthInfos[user] = &api.AuthInfo{ClientCertificateData: id.cert, ClientKeyData: id.key}
	config.Contexts["kmsharness"] = &api.Context{Cluster: "kmsharness", AuthInfo: user}
	config.CurrentContext = "kmsharness"
	text, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of user %q: %w", user, err)
	}
	return text, nil
}

// AdminKubeconfig is Kubeconfig for a user who may do everything.
func (cp *ControlPlane) AdminKubeconfig(server string) ([]byte, error) {
	return cp.Kubeconfig(adminUser, []string{adminGroup}, server)
}

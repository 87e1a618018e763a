package controlplane

import (
	"time"

	"k8s.io/client-go/rest"
)

// The administrator of a control plane; RBAC does not apply to this group.
const (
	adminUser  = "kmsharness-admin"
	adminGroup = "system:masters"
)

// RESTConfig is a client configuration with a certificate for user and groups. server is a URL of an API server, a link or
// a load balancer on 127.0.0.1. The client is not rate-limited.
func (cp *ControlPlane) RESTConfig(user string, groups []string, server string) (*rest.Config, error) {
	return cp.authority().RESTConfig(user, groups, server)
}

// AdminConfig is RESTConfig for a user who may do everything.
func (cp *ControlPlane) AdminConfig(server string) (*rest.Config, error) {
	return cp.authority().AdminConfig(server)
}

// Kubeconfig is a kubeconfig file with a certificate for user and groups.
func (cp *ControlPlane) Kubeconfig(user string, groups []string, server string) ([]byte, error) {
	return cp.authority().Kubeconfig(user, groups, server)
}

// Certificate is that of Authority.
func (cp *ControlPlane) Certificate(user string, groups []string, life time.Duration) (text []byte, expires time.Time, err error) {
	return cp.authority().Certificate(user, groups, life)
}

// AdminKubeconfig is Kubeconfig for a user who may do everything.
func (cp *ControlPlane) AdminKubeconfig(server string) ([]byte, error) {
	return cp.Kubeconfig(adminUser, []string{adminGroup}, server)
}

func (cp *ControlPlane) authority() Authority { return Authority{pki: cp.pki} }

package kind

import (
	"fmt"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
)

// config is the kind cluster of a plane with control-plane nodes of these names. The nodes have the names that scenarios
// use, whatever kind calls their containers.
func config(cluster string, l layout, names []string) *v1alpha4.Cluster {
	c := &v1alpha4.Cluster{
		TypeMeta: v1alpha4.TypeMeta{Kind: "Cluster", APIVersion: "kind.x-k8s.io/v1alpha4"},
		Name:     cluster,
	}
	for _, name := range names {
		c.Nodes = append(c.Nodes, v1alpha4.Node{
			Role: v1alpha4.ControlPlaneRole, ExtraMounts: mounts(l, name), KubeadmConfigPatches: []string{named("InitConfiguration", name), named("JoinConfiguration", name)},
		})
	}
	return c
}

func mounts(l layout, name string) []v1alpha4.Mount {
	n := l.node(name)
	return []v1alpha4.Mount{
		{HostPath: n.state(), ContainerPath: inNodeState},
		{HostPath: n.sockets(), ContainerPath: inNodeSocket},
		{HostPath: l.shared(), ContainerPath: inNodeShared},
	}
}

// named makes kubeadm register the node under a name.
func named(kind, name string) string {
	return fmt.Sprintf("kind: %s\napiVersion: kubeadm.k8s.io/v1beta4\nnodeRegistration: {name: %s}\n", kind, name)
}

package kind

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kmsharness/kmsharness/harness/backend/live"
)

const (
	// servicePort is that of a further API server's Service.
	servicePort = 443
	// portFurther is where it listens in its pod.
	portFurther = "8443"
	// labelAPIServer and labelNode are the labels of its pods.
	labelAPIServer, labelNode = "kmsharness.io/apiserver", "kmsharness.io/node"
)

// hostPorts are those of a node that lead to the pod of a further API server there, ready or not: a Service leads to any, and to ready
// ones only.
type hostPorts struct{ apiServer, metrics string }

// portsOf are those of the i-th further API server, from 0.
func portsOf(i int) hostPorts {
	const firstAPIServer, firstMetrics = 7443, 9465
	return hostPorts{strconv.Itoa(firstAPIServer + i), strconv.Itoa(firstMetrics + i)}
}

// objectsOf are what the pods of a further API server need to be there, in an order in which they can be created. OpenShift gives its API
// servers the role cluster-admin.
func objectsOf(s live.Stand) []runtime.Object {
	return []runtime.Object{
		&corev1.Namespace{TypeMeta: typeOf("v1", "Namespace"), ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}},
		&corev1.ServiceAccount{TypeMeta: typeOf("v1", "ServiceAccount"), ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.APIServer}},
		&rbacv1.ClusterRoleBinding{
			TypeMeta: typeOf("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"), ObjectMeta: metav1.ObjectMeta{Name: "kmsharness:" + s.APIServer},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.Namespace, Name: s.APIServer}},
		},
		&corev1.Service{
			TypeMeta: typeOf("v1", "Service"), ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Service},
			Spec: corev1.ServiceSpec{
				Selector: map[string]string{labelAPIServer: s.APIServer},
				Ports:    []corev1.ServicePort{{Name: "https", Port: servicePort, TargetPort: intstr.Parse(portFurther)}},
			},
		},
	}
}

func typeOf(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

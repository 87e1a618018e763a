package revision

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Configurations is the resource of the configuration of API servers, with the type of encryption that is asked for.
func Configurations() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "apiservers"}
}

// WriteKeyAnnotation of a StorageVersionMigration has the key that it is for.
const WriteKeyAnnotation = "encryption.apiserver.operator.openshift.io/write-key"

// Conditions of a StorageVersionMigration.
const (
	MigrationRunning   = "Running"
	MigrationSucceeded = "Succeeded"
	MigrationFailed    = "Failed"
)

// Programs that carry out StorageVersionMigrations.
const (
	MigratorOpenShift  = "openshift"  // kube-storage-version-migrator
	MigratorKubernetes = "kubernetes" // kube-controller-manager since Kubernetes 1.37
)

// MigrationsOf is the resource of a migrator; of OpenShift's also for the empty name.
func MigrationsOf(migrator string) schema.GroupVersionResource {
	if migrator == MigratorKubernetes {
		return schema.GroupVersionResource{Group: "storagemigration.k8s.io", Version: "v1", Resource: Migrations().Resource}
	}
	return Migrations()
}

// Migrators are the resources of all migrators.
func Migrators() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{MigrationsOf(MigratorOpenShift), MigrationsOf(MigratorKubernetes)}
}

// Migrations is the resource of kube-storage-version-migrator.
func Migrations() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "migration.k8s.io", Version: "v1alpha1", Resource: "storageversionmigrations"}
}

// ConditionsOf are the conditions of an object. Those that cannot be read are left out.
func ConditionsOf(u *unstructured.Unstructured) (all []metav1.Condition) {
	items, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, one := range items {
		var c metav1.Condition
		if fields, is := one.(map[string]any); is && runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &c) == nil {
			all = append(all, c)
		}
	}
	return all
}

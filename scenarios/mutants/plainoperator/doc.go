// Package plainoperator is an encryption operator in another style than this project's own: one reconcile loop that reads everything, decides the
// next step as a pure function of what it read, carries that one step out, and begins again. It shares no code with the package operator. It meets a
// cluster through the API objects that OpenShift's encryption controllers use: key Secrets, the Secret of the encryption configuration, pods with
// revisions, StorageVersionMigrations, the pre-flight pod, and conditions on the KubeAPIServer CR.
//
// A switch has this order, and each step begins when all nodes run the revision of the step before:
//
//  1. the pre-flight check passes, if the new key is one of a KMS
//  2. a key Secret is made
//  3. the key joins the encryption configuration as a read key
//  4. it becomes the write key
//  5. secrets and configmaps are migrated
//  6. all keys but the last one before it leave the configuration
//  7. key Secrets that are no longer used are pruned
//
// A change of the requested encryption waits until the newest key is migrated. Defects are variants of the operator with one mistake each.
package plainoperator

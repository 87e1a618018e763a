// Package core decides the encryption of one API server: when a key is created, read, used for writing and migrated to,
// and when old keys, plugins and revisions are removed.
//
// Decide is a function of the observations and the time. It is stateless: everything that must survive a crash is in
// the keys and revisions (operator/revision), so the operator may be killed at any point. The package has the stages,
// their preconditions, and the conditions for the administrator. Carrying out an action is in operator, the validation
// of configurations in operator/config.
//
// Each stage of a key begins only when every API server has loaded the configuration of the previous stage:
//
//	created → plugins run and report → read by all → written by all → everything migrated → others removed → pruned
package core

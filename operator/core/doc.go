// Package core decides what the operator of one API server does about encryption: which key is made, when it is read, when it writes,
// when data is migrated, and what is torn down when.
//
// Decide is a function of what was observed and the time. It has no memory: what must survive a crash is in the keys and revisions
// (operator/revision), so that it makes no difference where an operator is killed. What lives here: the stages, their
// preconditions, conditions for the administrator. What does not: how an action is carried out (operator), and which
// configurations are valid (operator/config).
//
// The stages of a key, each of which begins only when every API server has loaded the configuration of the one before:
//
//	made → plugins run and report → read by all → written by all → everything migrated → others removed → pruned
package core

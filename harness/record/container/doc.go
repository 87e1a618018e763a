// Package container turns what a container engine and containerd say into the history's containers.
//
// Neither needs an API server: the engine tells of the containers that are nodes, containerd of those inside one. What does not
// live here: running the commands that print this (harness/backend/kind), what processes below hold do (harness/record/hold).
package container

// Package model is a small cluster in which an operator's decisions are tried: API servers with the configurations that they have
// loaded, objects with the key that encrypted them, plugins, reporters, a remote KMS, and everything that can happen in between.
//
// What lives here: that world, what must never happen in it, and what must be true when it comes to rest. What does not: any decision
// of its own (operator/core, or a wrong one from scenarios/mutants). It is pure: chance comes from a Choose, which a property
// test or a seed provides.
//
// What it leaves out: what clients are refused while a plugin is down, and kekIDs that come and go between two reports. KMS v2 forbids
// those, and no reader of reports could notice them.
package model
